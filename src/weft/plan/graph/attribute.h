// weft/plan/graph/attribute.h -- a node's constant arguments.
//
// An operator declares its attributes once, in order (AttributeSpec). A node holds one value per
// attribute, in that order. Reading, printing, hashing and checking need no code per operator.
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

// An attribute value as passed to Graph::add(). monostate stands for the default.
using AttributeValue =
    std::variant<std::monostate, std::int64_t, double, Symbol, std::span<const Symbol>, DType, TypeId>;

// An attribute value as stored in a node.
struct Attribute {
  union {
    std::int64_t integer;
    double real;
    std::uint32_t id;  // a Symbol, a TypeId or a DType
    const Symbol* indices;
  };
  std::uint32_t count = 0;  // number of `indices`
};

}  // namespace weft::plan
