// weft/device/cuda/expression.h -- pointwise operators as the text of an expression in CUDA C++.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/signature.h"

namespace weft::device::cuda {

// Of f32; a truth is 1 or 0. Nothing for an operator that is not pointwise.
std::optional<std::string> expression(const plan::Operator& op, std::span<const std::string> operands);

// Two values of a monoid as one: "weft_max(a, b)".
std::string combined(plan::Monoid monoid, std::string_view a, std::string_view b);
std::string_view identity(plan::Monoid monoid);

// A number so that the compiler reads the same float again.
std::string number(double value);

// What the expressions call; the beginning of every kernel's text.
std::string_view prelude();

// weft_pack<T, n>: elements that are read and written together.
std::string_view pack_source();

// Of an element in memory: "float", "weft_bf16", "unsigned char", "int", "long long".
std::string_view type_name(plan::DType dtype);

}  // namespace weft::device::cuda
