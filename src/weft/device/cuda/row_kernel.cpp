#include "weft/device/cuda/kernels.h"
#include "weft/device/cuda/launch.h"
#include "weft/device/cuda/row_source.h"

namespace weft::device::cuda {
namespace {

using program::RowLoop;

class RowKernel final : public Kernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(Functions& gpu, const program::Program& program,
                                              const RowLoop& loop, Address memory) {
    auto kernel = std::make_unique<RowKernel>();
    kernel->source_ = row_source(loop);
    kernel->length_ = loop.length;
    kernel->blocks_ = std::max<std::int64_t>(loop.blocks(), 1);
    kernel->block_ = std::max<std::int64_t>(loop.block, 1);
    for (const program::RowOperand& operand : loop.operands)
      kernel->operands_.push_back(cuda::pointer(program, operand.place, memory));
    WEFT_TRY(main, gpu.function(kernel->source_.text, kernel->source_.name));
    kernel->main_ = main;
    const std::int64_t rows = kernel->rows_ = loop.rows();
    for (std::size_t k = 0; k < kernel->source_.sums.size(); ++k) {
      const SumSource& source = kernel->source_.sums[k];
      Sum sum;
      WEFT_TRY(add, gpu.function(kernel->source_.text, source.name));
      WEFT_TRY(join, gpu.function(kernel->source_.text, source.join));
      sum.add = add;
      sum.join = join;
      sum.addends = kernel->scratch_;
      kernel->scratch_ += aligned(rows * source.width * 4);
      sum.segments = kernel->scratch_;
      kernel->scratch_ += aligned(source.segments * source.elements * 8);
      kernel->sums_.push_back(sum);
    }
    kernel->source_.text.clear();
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  std::int64_t scratch_bytes() const override { return scratch_; }

  // Whole: the device cuts it, whatever its tasks are for others.
  Code launch(const LaunchPlace& at, const program::Task&) const override {
    const std::int64_t items = rows_ * blocks_;
    if (items > 0 && length_ > 0) {
      Parameters parameters;
      for (const DevicePointer operand : operands_) parameters.pointer(operand);
      for (const Sum& sum : sums_) parameters.pointer(at.scratch + static_cast<DevicePointer>(sum.addends));
      parameters.whole(0).whole(items).whole(0).whole(rows_);
      const auto threads = static_cast<unsigned>(source_.threads),
                 rows = static_cast<unsigned>(source_.rows_per_block);
      const unsigned blocks =
          source_.by_row ? blocks_for(at.gpu, rows_, source_.rows_per_block)
                         : blocks_for(at.gpu, sums_.empty() ? items * block_ : rows_ * length_, threads);
      if (const Code code = parameters.launch(at, main_, {blocks, 1}, {threads, rows}); code != 0)
        return code;
    }
    for (std::size_t k = 0; k < sums_.size(); ++k) {
      const SumSource& source = source_.sums[k];
      if (source.elements == 0) continue;
      const DevicePointer segments = at.scratch + static_cast<DevicePointer>(sums_[k].segments);
      const auto wide = static_cast<unsigned>((source.elements + 127) / 128),
                 deep = static_cast<unsigned>(source.segments);
      Parameters add;
      add.pointer(at.scratch + static_cast<DevicePointer>(sums_[k].addends)).pointer(segments);
      add.whole(0).whole(length_ > 0 ? rows_ : 0);
      if (const Code code = add.launch(at, sums_[k].add, {wide, deep}, {128, 1}); code != 0) return code;
      Parameters join;
      join.pointer(segments).pointer(operands_[source.memory]).whole(source.segments);
      if (const Code code = join.launch(at, sums_[k].join, {wide, 1}, {128, 1}); code != 0) return code;
    }
    return 0;
  }

 private:
  struct Sum {
    Handle add = nullptr, join = nullptr;
    std::int64_t addends = 0, segments = 0;  // where in the scratch memory
  };
  static std::int64_t aligned(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }

  RowSource source_;
  Handle main_ = nullptr;
  std::int64_t rows_ = 1, length_ = 0, blocks_ = 1, block_ = 1, scratch_ = 0;
  std::vector<DevicePointer> operands_;
  std::vector<Sum> sums_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> make_row_kernel(Functions& gpu, const program::Program& program,
                                                const program::Unit& unit, Address memory) {
  return RowKernel::make(gpu, program, std::get<RowLoop>(unit.kernel), memory);
}

}  // namespace weft::device::cuda
