// weft/plan/graph/attribute.h -- what a node is told besides its operands.
//
// An operator declares its attributes once, in order (AttributeSpec); a node holds one value
// each, in that order. Reading, printing, hashing and checking attributes need no code per operator.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "weft/base/symbols.h"
#include "weft/plan/graph/dtype.h"
#include "weft/plan/graph/type.h"

namespace weft::plan {

enum class AttributeKind : std::uint8_t {
  integer,  // stride=2
  real,     // epsilon=1e-05
  word,     // init=normal, name=block.0.w
  index,    // along=s
  indices,  // to=[b,f]
  dtype,    // to=bf16
  type,     // type=f32[b=64,d=784]
};

struct AttributeSpec {
  std::string_view name;
  AttributeKind kind;
  bool required = true;
  double number = 0;           // the default of an optional integer or real
  std::string_view word = {};  // the default of an optional word
};

// How code states a value when it adds a node. monostate stands for the default.
using AttributeValue =
    std::variant<std::monostate, std::int64_t, double, Symbol, std::span<const Symbol>, DType, TypeId>;

// How a node keeps it.
struct Attribute {
  union {
    std::int64_t integer;
    double real;
    std::uint32_t id;  // a Symbol, a TypeId or a DType
    const Symbol* indices;
  };
  std::uint32_t count = 0;  // of indices
};

}  // namespace weft::plan
