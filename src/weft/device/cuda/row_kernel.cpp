#include "weft/device/cuda/kernels.h"
#include "weft/device/cuda/launch.h"
#include "weft/device/cuda/row_choices.h"
#include "weft/device/cuda/row_source.h"
#include "weft/device/cuda/row_sums.h"

namespace weft::device::cuda {
namespace {

using program::RowLoop;

// Number of blocks that share the rows when threads keep sums: the same on every device, for
// identical bits.
std::int64_t summing_blocks(const RowSource& source, std::int64_t rows) {
  return std::clamp<std::int64_t>((rows + source.rows_per_block - 1) / source.rows_per_block, 1,
                                  source.most_blocks);
}

class RowKernel final : public Kernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(Functions& gpu, const RowLoop& loop, RowSource source,
                                              std::vector<DevicePointer> operands) {
    auto kernel = std::make_unique<RowKernel>();
    kernel->source_ = std::move(source);
    kernel->length_ = loop.length;
    kernel->operands_ = std::move(operands);
    WEFT_TRY(main, gpu.function(kernel->source_.text, kernel->source_.name));
    kernel->main_ = main;
    kernel->rows_ = loop.rows();
    if (kernel->source_.sums_at_once) {
      WEFT_TRY(add_all, gpu.function(kernel->source_.text, std::string(kSumsAtOnce)));
      kernel->add_all_ = add_all;
    }
    const std::int64_t parts =
        kernel->source_.sums_in_threads ? summing_blocks(kernel->source_, kernel->rows_) : kernel->rows_;
    for (const SumSource& of : kernel->source_.sums) {
      Sum sum;
      sum.addends_at = kernel->take(parts * of.width * 4);
      if (!kernel->source_.sums_at_once) {
        WEFT_TRY(add, gpu.function(kernel->source_.text, of.name));
        WEFT_TRY(join, gpu.function(kernel->source_.text, of.join));
        sum.add = add;
        sum.join = join;
        // Enough threads to fill a GPU, with segments long enough to be worth the second pass.
        const std::int64_t elements = std::max<std::int64_t>(of.elements, 1);
        sum.segments = std::clamp<std::int64_t>(std::min((1 << 17) / elements, of.addends / 32), 1, 1024);
        sum.segments_at = kernel->take(sum.segments * of.elements * 8);
      }
      kernel->sums_.push_back(sum);
    }
    kernel->source_.text.clear();
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  std::int64_t scratch_bytes() const override { return scratch_; }

  // Runs the whole unit: the grid divides the work, not the tasks.
  Code launch(const LaunchContext& at, const program::Task&) const override {
    const auto scratch = [&](std::int64_t offset) { return at.scratch + static_cast<DevicePointer>(offset); };
    if (length_ > 0 && (rows_ > 0 || source_.sums_in_threads)) {
      Parameters parameters;
      for (const DevicePointer operand : operands_) parameters.pointer(operand);
      for (const Sum& sum : sums_) parameters.pointer(scratch(sum.addends_at));
      const auto threads = static_cast<unsigned>(source_.threads),
                 rows = static_cast<unsigned>(source_.rows_per_block);
      const unsigned blocks = source_.sums_in_threads ? static_cast<unsigned>(summing_blocks(source_, rows_))
                              : source_.by_row        ? blocks_for(rows_, source_.rows_per_block)
                                                      : blocks_for(rows_ * length_ / source_.each, threads);
      if (const Code code = parameters.launch(at, main_, {blocks, 1}, {threads, rows}); code != 0)
        return code;
    }
    if (source_.sums_at_once) return add_all(at);
    for (std::size_t k = 0; k < sums_.size(); ++k) {
      const Sum& sum = sums_[k];
      const SumSource& source = source_.sums[k];
      if (source.elements == 0) continue;
      const auto wide = static_cast<unsigned>((source.elements + 127) / 128);
      Parameters add, join;
      add.pointer(scratch(sum.addends_at)).pointer(scratch(sum.segments_at)).whole(source.addends);
      if (const Code code = add.launch(at, sum.add, {wide, static_cast<unsigned>(sum.segments)}, {128, 1});
          code != 0)
        return code;
      join.pointer(scratch(sum.segments_at)).pointer(operands_[source.memory]).whole(sum.segments);
      if (const Code code = join.launch(at, sum.join, {wide, 1}, {128, 1}); code != 0) return code;
    }
    return 0;
  }

 private:
  Code add_all(const LaunchContext& at) const {
    Parameters parameters;
    std::int64_t most = 0;
    for (std::size_t k = 0; k < sums_.size(); ++k) {
      parameters.pointer(at.scratch + static_cast<DevicePointer>(sums_[k].addends_at));
      parameters.pointer(operands_[source_.sums[k].memory]);
      most = std::max(most, source_.sums[k].elements);
    }
    if (most == 0) return 0;
    parameters.whole(source_.sums_in_threads ? summing_blocks(source_, rows_) : 0);
    return parameters.launch(at, add_all_,
                             {blocks_for(most, kSummedPlaces), static_cast<unsigned>(sums_.size())},
                             {kSummedPlaces, kSummedPlaces});
  }

  struct Sum {
    Handle add = nullptr, join = nullptr;          // if one kernel does not add up all sums
    std::int64_t segments = 1;                     // then the addends are summed by segments
    std::int64_t addends_at = 0, segments_at = 0;  // offsets in scratch memory
  };
  std::int64_t take(std::int64_t bytes) {
    const std::int64_t at = scratch_;
    scratch_ += (bytes + 255) / 256 * 256;
    return at;
  }

  RowSource source_;
  Handle main_ = nullptr, add_all_ = nullptr;  // add_all_ computes all sums at once
  std::int64_t rows_ = 1, length_ = 0, scratch_ = 0;
  std::vector<DevicePointer> operands_;
  std::vector<Sum> sums_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> make_row_kernel(Functions& gpu, const program::Program& program,
                                                const program::Unit& unit, Address memory) {
  const auto& loop = std::get<RowLoop>(unit.kernel);
  std::vector<DevicePointer> operands;
  for (const program::RowOperand& operand : loop.operands)
    operands.push_back(pointer(program, operand.place, memory));
  RowSource usual = row_source(loop);
  if (usual.by_row)
    if (const RowShape chosen = gpu.row_shape(row_key(usual, loop)); chosen != RowShape{})
      usual = row_source(loop, chosen);
  return RowKernel::make(gpu, loop, std::move(usual), std::move(operands));
}

Result<std::unique_ptr<Kernel>> make_row_kernel(Functions& gpu, const RowLoop& loop,
                                                std::span<const DevicePointer> operands,
                                                const RowShape& shape) {
  return RowKernel::make(gpu, loop, row_source(loop, shape), {operands.begin(), operands.end()});
}

}  // namespace weft::device::cuda
