// weft/plan/graph/dtype.h -- what one element of a tensor is.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weft::plan {

// Of eight bits there are two: f8e4m3 has a sign, 4 bits of exponent and 3 of fraction, no infinity, and ends at 448;
// f8e5m2 has 5 and 2, and ends at 57344.
enum class DType : std::uint8_t { f32, f64, bf16, f16, i32, i64, boolean, f8e4m3, f8e5m2 };

constexpr std::array<DType, 9> kAllDTypes = {DType::f32,     DType::f64,    DType::bf16,
                                             DType::f16,     DType::i32,    DType::i64,
                                             DType::boolean, DType::f8e4m3, DType::f8e5m2};

std::string_view name(DType dtype);  // "f32", ..., "bool"
std::int64_t size_in_bytes(DType dtype);
bool is_real(DType dtype);     // f32, f64, bf16, f16, f8e4m3, f8e5m2
bool is_integer(DType dtype);  // i32, i64
constexpr bool is_f8(DType dtype) { return dtype == DType::f8e4m3 || dtype == DType::f8e5m2; }
constexpr double largest_f8(DType dtype) { return dtype == DType::f8e4m3 ? 448 : 57344; }

// Accepts SQL's, numpy's and torch's spellings too: "float32", "int32", "half", "boolean", "double", "float8_e5m2".
std::optional<DType> find_dtype(std::string_view text);
std::span<const std::string_view> dtype_spellings();
std::string dtype_names();  // "f32, f64, ..."

}  // namespace weft::plan
