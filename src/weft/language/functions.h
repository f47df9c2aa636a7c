// weft/language/functions.h -- the functions of WeftQL.
//
// Used by the binder, SHOW FUNCTIONS and completion. Pointwise functions are rows of
// ops/pointwise_rows.h; the others are rows of functions.cpp.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "weft/plan/ops/pointwise.h"

namespace weft::language {

enum class FunctionKind : std::uint8_t {
  pointwise,  // element by element
  aggregate,  // sum mean max min
  window,     // needs OVER (PARTITION BY ...)
  image,      // convolution and pooling
  routing,    // top_k, slot
  other,
};

struct FunctionSpec {
  std::string_view name;
  FunctionKind kind;
  std::size_t fewest, most;  // positional arguments
  std::string_view usage;    // "layer_norm(x [, epsilon => 1e-5]) OVER (PARTITION BY ...)"
  std::string_view summary;
  std::span<const std::string_view> labels = {};  // names of named arguments
  const ops::Operator* op = nullptr;              // pointwise only
  ops::Compute<double> fold = nullptr;            // for constant folding; pointwise with one argument
};

std::span<const FunctionSpec> functions();                 // ordered by name
const FunctionSpec* find_function(std::string_view name);  // null if there is none
std::span<const std::string_view> function_names();

}  // namespace weft::language
