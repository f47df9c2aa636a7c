#include "weft/communication/comm/gpu/combine_source.h"

#include <string_view>

#include <fmt/format.h>

#include "weft/device/cuda/expression.h"

namespace weft::comm::gpu {
namespace {

using device::ElementType;
using device::ReduceOp;

struct Words {
  std::string_view element, number;
};

// Integers are combined as unsigned, so that they wrap, unless the operation compares them.
Words words_of(ElementType type, bool signed_numbers) {
  switch (type) {
    case ElementType::f64: return {"double", "double"};
    case ElementType::f32: return {"float", "float"};
    case ElementType::f16: return {"weft_f16", "float"};
    case ElementType::bf16: return {"weft_bf16", "float"};
    case ElementType::i8: return {"signed char", signed_numbers ? "signed char" : "unsigned char"};
    case ElementType::i16: return {"short", signed_numbers ? "short" : "unsigned short"};
    case ElementType::i32: return {"int", signed_numbers ? "int" : "unsigned"};
    case ElementType::i64: return {"long long", signed_numbers ? "long long" : "unsigned long long"};
    case ElementType::u8: return {"unsigned char", "unsigned char"};
    case ElementType::u16: return {"unsigned short", "unsigned short"};
    case ElementType::u32: return {"unsigned", "unsigned"};
    case ElementType::u64: return {"unsigned long long", "unsigned long long"};
  }
  return {};
}

std::string_view form_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg: return "a + b";
    case ReduceOp::product: return "a * b";
    case ReduceOp::min: return "a < b || a != a ? a : b";
    case ReduceOp::max: return "a > b || a != a ? a : b";
    case ReduceOp::bit_and: return "a & b";
    case ReduceOp::bit_or: return "a | b";
    case ReduceOp::bit_xor: return "a ^ b";
  }
  return {};
}

constexpr std::string_view kText = R"(
typedef {element} weft_element;
typedef {number} weft_number;
__device__ __forceinline__ weft_number weft_combine(weft_number a, weft_number b) {{
  return weft_number({form});
}}
__device__ __forceinline__ weft_element weft_divided(weft_element sum, long long count) {{
  return weft_element({divided});
}}

union weft_pack {{
  uint4 words;
  weft_element x[16 / sizeof(weft_element)];
  __device__ weft_pack() {{}}
}};
// Data written by other SMs is in the shared L2 cache, not in this SM's L1.
__device__ __forceinline__ weft_pack weft_take(const uint4* from) {{
  weft_pack pack;
  asm volatile("ld.global.cg.v4.u32 {{%0, %1, %2, %3}}, [%4];"
               : "=r"(pack.words.x), "=r"(pack.words.y), "=r"(pack.words.z), "=r"(pack.words.w)
               : "l"(from) : "memory");
  return pack;
}}
__device__ __forceinline__ void weft_put(uint4* to, const weft_pack& pack) {{
  asm volatile("st.global.cg.v4.u32 [%0], {{%1, %2, %3, %4}};"
               :: "l"(to), "r"(pack.words.x), "r"(pack.words.y), "r"(pack.words.z), "r"(pack.words.w)
               : "memory");
}}
)";

}  // namespace

std::string combine_source(ElementType type, ReduceOp op) {
  const Words words = words_of(type, op == ReduceOp::min || op == ReduceOp::max);
  const bool has_sign = !(type == ElementType::u8 || type == ElementType::u16 || type == ElementType::u32 ||
                          type == ElementType::u64);
  const std::string_view wide = !device::is_whole(type) ? words.number
                                : has_sign              ? "long long"
                                                        : "unsigned long long";
  return std::string(device::cuda::prelude()) +
         fmt::format(kText, fmt::arg("element", words.element), fmt::arg("number", words.number),
                     fmt::arg("form", form_of(op)),
                     fmt::arg("divided", fmt::format("({0})(sum) / ({0})(count)", wide)));
}

}  // namespace weft::comm::gpu
