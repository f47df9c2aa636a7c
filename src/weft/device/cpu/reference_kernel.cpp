#include "weft/device/cpu/call_kernel.h"
#include "weft/device/element_access.h"
#include "weft/plan/ops/interpret.h"
#include "weft/plan/ops/loops.h"

namespace weft::device::cpu {
namespace {

class ReferenceKernel final : public Kernel {
 public:
  ReferenceKernel(const program::Program& program, const program::OperatorCall& call, std::byte* memory)
      : node_(program.graph->view(call.node)) {
    for (const program::Place& place : call.operands) operands_.push_back(address(program, place, memory));
    for (const program::Place& place : call.results) results_.push_back(address(program, place, memory));
  }

  bool is_reference() const override { return true; }

  void run(const program::Task&, std::byte*) const override {
    std::vector<ops::Tensor<double>> values(operands_.size());
    std::vector<const ops::Tensor<double>*> inputs;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const plan::Type type = node_.input_type(i);
      values[i].sizes = ops::sizes_of(type.dims);
      values[i].data.resize(static_cast<std::size_t>(type.elements()));
      for (std::int64_t k = 0; k < type.elements(); ++k)
        values[i].data[static_cast<std::size_t>(k)] = load_element(type.dtype, operands_[i], k);
      inputs.push_back(&values[i]);
    }
    const std::vector<ops::Tensor<double>> results = ops::evaluate<double>(node_, inputs);
    for (std::size_t i = 0; i < results.size(); ++i)
      for (std::int64_t k = 0; k < results[i].elements(); ++k)
        store_element(node_.result_type(i).dtype, results_[i], k,
                      results[i].data[static_cast<std::size_t>(k)]);
  }

 private:
  const plan::NodeView node_;
  std::vector<std::byte*> operands_, results_;
};

}  // namespace

std::unique_ptr<Kernel> make_reference_kernel(const program::Program& program,
                                              const program::OperatorCall& call, std::byte* memory) {
  return std::make_unique<ReferenceKernel>(program, call, memory);
}

}  // namespace weft::device::cpu
