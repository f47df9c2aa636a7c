#include "weft/device/cpu/reduction.h"

#include <array>
#include <cstring>

#include "weft/base/check.h"
#include "weft/device/cpu/reduction_kernels.h"

namespace weft::device {
namespace {

struct TypeTraits {
  std::string_view name, nccl_name;
  std::size_t size;
};
constexpr std::array<TypeTraits, kElementTypes> kTypes = {{{"f64", "double", 8},
                                                           {"f32", "float", 4},
                                                           {"f16", "half", 2},
                                                           {"bf16", "bfloat16", 2},
                                                           {"i8", "int8", 1},
                                                           {"i32", "int32", 4},
                                                           {"i64", "int64", 8},
                                                           {"u8", "uint8", 1}}};
constexpr std::array<std::string_view, kReduceOps> kOps = {"sum", "product", "min", "max", "avg"};

const ReductionKernels& widest_kernels() {
#if WEFT_REDUCTIONS_WIDER
  __builtin_cpu_init();
  const bool halves = __builtin_cpu_supports("f16c");
  if (halves && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return kAvx512Reductions;
  if (halves && __builtin_cpu_supports("avx2")) return kAvx2Reductions;
#endif
  return WEFT_REDUCTIONS::kReductionKernels;
}

const ReductionKernels& kernels() {
  static const ReductionKernels& chosen = widest_kernels();
  return chosen;
}

}  // namespace

std::string_view name(ElementType type) { return kTypes[static_cast<std::size_t>(type)].name; }
std::string_view name(ReduceOp op) { return kOps[static_cast<std::size_t>(op)]; }
std::size_t size_of(ElementType type) { return kTypes[static_cast<std::size_t>(type)].size; }

std::optional<ElementType> find_element_type(std::string_view name) {
  for (std::size_t i = 0; i < kTypes.size(); ++i)
    if (name == kTypes[i].name || name == kTypes[i].nccl_name) return static_cast<ElementType>(i);
  return std::nullopt;
}

std::optional<ReduceOp> find_reduce_op(std::string_view name) {
  if (name == "prod") return ReduceOp::product;
  for (std::size_t i = 0; i < kOps.size(); ++i)
    if (name == kOps[i]) return static_cast<ReduceOp>(i);
  return std::nullopt;
}

void reduce(ElementType type, ReduceOp op, void* target, std::span<const void* const> sources,
            std::size_t elements) {
  WEFT_CHECK(!sources.empty());
  if (elements == 0) return;
  if (sources.size() == 1) {
    if (target != sources[0]) std::memcpy(target, sources[0], elements * size_of(type));
    return;
  }
  const ReductionKernels::Folds& folds =
      kernels().folds[static_cast<std::size_t>(type)][static_cast<std::size_t>(op)];
  const std::size_t unrolled = sources.size() <= kUnrolledSources ? sources.size() : 0;
  folds[unrolled](target, sources.data(), sources.size(), elements);
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

}  // namespace weft::device
