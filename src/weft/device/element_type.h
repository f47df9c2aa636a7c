// weft/device/element_type.h -- element types and reductions of collectives, on any device.
//
//   name(ElementType::bf16) == "bf16", size_of(ElementType::bf16) == 2
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weft::device {

enum class ElementType : std::uint8_t { f64, f32, f16, bf16, i8, i32, i64, u8, i16, u16, u32, u64 };
inline constexpr std::size_t kElementTypes = 12;
enum class ReduceOp : std::uint8_t { sum, product, min, max, avg, bit_and, bit_or, bit_xor };
inline constexpr std::size_t kReduceOps = 8;

std::string_view name(ElementType type);                              // "bf16"
std::string_view name(ReduceOp op);                                   // "sum", "and"
std::optional<ElementType> find_element_type(std::string_view name);  // also "float", "half" of nccl-tests
std::optional<ReduceOp> find_reduce_op(std::string_view name);        // also "prod", "band"
std::size_t size_of(ElementType type);
bool is_whole(ElementType type);  // an integer
bool is_bitwise(ReduceOp op);     // integers only

}  // namespace weft::device
