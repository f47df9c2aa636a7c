// weft/device/element_type.h -- the numbers that collectives move and how they are combined, whatever
// computes.
//
//   name(ElementType::bf16) == "bf16", size_of(ElementType::bf16) == 2
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weft::device {

enum class ElementType : std::uint8_t { f64, f32, f16, bf16, i8, i32, i64, u8 };
inline constexpr std::size_t kElementTypes = 8;
enum class ReduceOp : std::uint8_t { sum, product, min, max, avg };
inline constexpr std::size_t kReduceOps = 5;

std::string_view name(ElementType type);                              // "bf16"
std::string_view name(ReduceOp op);                                   // "sum"
std::optional<ElementType> find_element_type(std::string_view name);  // also nccl-tests' "float", "half", ...
std::optional<ReduceOp> find_reduce_op(std::string_view name);        // also "prod"
std::size_t size_of(ElementType type);

}  // namespace weft::device
