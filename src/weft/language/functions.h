// weft/language/functions.h -- the functions of WeftQL, for the binder, for SHOW FUNCTIONS and for completion
// alike. The pointwise ones are rows of ops/pointwise_rows.h; the others have a row in functions.cpp.
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
  std::span<const std::string_view> labels = {};  // of named arguments
  const ops::Operator* op = nullptr;              // pointwise only
  ops::Compute<double> fold = nullptr;            // pointwise of one argument: its value at a known number
};

std::span<const FunctionSpec> functions();                 // by name
const FunctionSpec* find_function(std::string_view name);  // null when there is none
std::span<const std::string_view> function_names();

}  // namespace weft::language
