// weft/device/cuda/expression.h -- pointwise operators as CUDA C++ expressions.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/signature.h"

namespace weft::device::cuda {

// On f32, with booleans as 1 or 0. Nothing if the operator is not pointwise.
std::optional<std::string> expression(const plan::Operator& op, std::span<const std::string> operands);

// Combines two values under a monoid: "weft_max(a, b)".
std::string combined(plan::Monoid monoid, std::string_view a, std::string_view b);
std::string_view identity(plan::Monoid monoid);

// A literal that the compiler parses to the same float.
std::string number(double value);

// Functions used by expressions; the start of every kernel's source.
std::string_view prelude();

// weft_pack<T, n>: elements read and written together.
std::string_view pack_source();

// The type of an element in memory: "float", "weft_bf16", "unsigned char", "int", "long long".
std::string_view type_name(plan::DType dtype);

}  // namespace weft::device::cuda
