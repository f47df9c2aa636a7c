// weft/plan/dtype.h -- what one element of a tensor is.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace weft::plan {

enum class DType : std::uint8_t { f32, f64, bf16, f16, i32, i64, boolean };

constexpr std::array<DType, 7> kAllDTypes = {DType::f32, DType::f64, DType::bf16,   DType::f16,
                                             DType::i32, DType::i64, DType::boolean};

std::string_view name(DType dtype);  // "f32", ..., "bool"
std::int64_t size_in_bytes(DType dtype);
bool is_real(DType dtype);     // f32, f64, bf16, f16
bool is_integer(DType dtype);  // i32, i64

// Accepts SQL's and numpy's spellings too: "float32", "int32", "half", "boolean", "double".
std::optional<DType> find_dtype(std::string_view text);
std::span<const std::string_view> dtype_spellings();

}  // namespace weft::plan
