// weft/plan/graph/dtype.h -- the element types of tensors.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weft::plan {

// There are two 8-bit formats. f8e4m3 has a sign, 4 exponent and 3 mantissa bits, no infinity, and
// a maximum of 448. f8e5m2 has 5 and 2, and a maximum of 57344.
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

// Also accepts the spellings of SQL, NumPy and PyTorch: "float32", "int32", "half", "boolean",
// "double", "float8_e5m2".
std::optional<DType> find_dtype(std::string_view text);
std::span<const std::string_view> dtype_spellings();
std::string dtype_names();  // "f32, f64, ..."

}  // namespace weft::plan
