#include "weft/device/cpu/reduction.h"

#include <cstring>

#include "weft/base/check.h"
#include "weft/device/cpu/instruction_set.h"
#include "weft/device/cpu/reduction_kernels.h"

namespace weft::device::cpu {
namespace {

const ReductionKernels& widest_kernels() {
#if WEFT_REDUCTIONS_WIDER
  if (instruction_set() == InstructionSet::avx512) return kAvx512Reductions;
  if (instruction_set() == InstructionSet::avx2) return kAvx2Reductions;
#endif
  return WEFT_REDUCTIONS::kReductionKernels;
}

const ReductionKernels& kernels() {
  static const ReductionKernels& chosen = widest_kernels();
  return chosen;
}

}  // namespace

void reduce(ElementType type, ReduceOp op, void* target, std::span<const void* const> sources,
            std::size_t elements) {
  WEFT_CHECK(!sources.empty());
  if (elements == 0) return;
  if (sources.size() == 1) {
    if (target != sources[0]) std::memcpy(target, sources[0], elements * size_of(type));
    return;
  }
  const bool bitwise = is_bitwise(op);
  WEFT_CHECK(!bitwise || is_whole(type));
  if (bitwise) elements *= size_of(type);  // bitwise operations may run on bytes
  const ReductionKernels::Folds& folds =
      bitwise ? kernels().bitwise[static_cast<std::size_t>(op) - kArithmeticOps]
              : kernels().folds[static_cast<std::size_t>(type)][static_cast<std::size_t>(op)];
  folds[WEFT_REDUCTIONS::loop_for(sources.size())](target, sources.data(), sources.size(), elements);
}

void reduce_pair(ElementType type, ReduceOp op, void* target, const void* first, const void* second,
                 std::size_t elements) {
  const void* const sources[] = {first, second};
  reduce(type, op, target, sources, elements);
}

void finish_average(ElementType type, void* target, std::size_t elements, std::int64_t count) {
  WEFT_CHECK(count > 0);
  if (count == 1) return;
  kernels().divide[static_cast<std::size_t>(type)](target, elements, count);
}

}  // namespace weft::device::cpu
