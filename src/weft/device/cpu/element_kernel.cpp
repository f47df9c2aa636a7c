#include <array>

#include "weft/device/cpu/call_kernel.h"
#include "weft/device/element_access.h"
#include "weft/plan/ops/pointwise.h"
#include "weft/plan/ops/sources.h"

namespace weft::device::cpu {
namespace {

using plan::NodeView;

class ElementKernel final : public Kernel {
 public:
  ElementKernel(const program::Program& program, const program::OperatorCall& call, std::byte* memory)
      : node_(program.graph->view(call.node)), result_(address(program, call.results[0], memory)) {
    for (const plan::Dim& dim : node_.result_type(0).dims) sizes_.push_back(dim.size);
    for (std::size_t i = 0; i < call.operands.size(); ++i) {
      Source source{address(program, call.operands[i], memory), node_.input_type(i).dtype, {}};
      for (const plan::Dim& dim : node_.result_type(0).dims)
        source.strides.push_back(call.operands[i].stride(dim.index));
      sources_.push_back(std::move(source));
    }
    if (const ops::Pointwise* row = ops::find_pointwise(node_.op())) {
      const bool whole = is_integer(node_.input_type(0).dtype) && row->of_integers.in_double != nullptr;
      compute_ = whole ? row->of_integers.in_double : row->meaning.in_double;
    }
  }

  void run(const program::Task&, std::byte*) const override {
    const plan::DType dtype = node_.result_type(0).dtype;
    std::array<std::int64_t, plan::kLargestRank> at = {};
    const std::int64_t elements = node_.result_type(0).elements();
    for (std::int64_t k = 0; k < elements; ++k) {
      store_element(dtype, result_, k, element(at, k));
      for (std::size_t i = sizes_.size(); i-- > 0;) {
        if (++at[i] < sizes_[i]) break;
        at[i] = 0;
      }
    }
  }

 private:
  struct Source {
    const std::byte* memory;
    plan::DType dtype;
    std::vector<std::int64_t> strides;
  };

  double element(const std::array<std::int64_t, plan::kLargestRank>& at, std::int64_t k) const {
    if (&node_.op() == &ops::constant()) return node_.real(0);
    if (&node_.op() == &ops::position()) return static_cast<double>(node_.integer(2) + k);
    std::array<double, 3> operands = {};
    for (std::size_t s = 0; s < sources_.size(); ++s) {
      std::int64_t offset = 0;
      for (std::size_t i = 0; i < sizes_.size(); ++i) offset += at[i] * sources_[s].strides[i];
      operands[s] = load_element(sources_[s].dtype, sources_[s].memory, offset);
    }
    if (compute_ != nullptr) return compute_({}, operands.data());
    // A cast to an integer truncates.
    return is_integer(node_.result_type(0).dtype) ? std::trunc(operands[0]) : operands[0];
  }

  const NodeView node_;
  std::byte* const result_;
  std::vector<std::int64_t> sizes_;
  std::vector<Source> sources_;
  ops::Compute<double> compute_ = nullptr;
};

}  // namespace

std::unique_ptr<Kernel> make_element_kernel(const program::Program& program,
                                            const program::OperatorCall& call, std::byte* memory) {
  return std::make_unique<ElementKernel>(program, call, memory);
}

}  // namespace weft::device::cpu
