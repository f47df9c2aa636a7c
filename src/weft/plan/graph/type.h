// weft/plan/graph/type.h -- the type of a value: a dtype and named, sized indices in order.
//
//   f32[b=64,d=784]     64 rows of 784 numbers
//   i32[]               one integer
//
// The order of the indices is the memory order, last one fastest. Indices are matched by name: two
// values that both have an index `d` agree on its meaning and size.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "weft/base/ids.h"
#include "weft/base/symbols.h"
#include "weft/plan/graph/dtype.h"

namespace weft::plan {

struct TypeTag;
using TypeId = Id<TypeTag>;

struct Dim {
  Symbol index;
  std::int64_t size = 0;

  friend bool operator==(const Dim&, const Dim&) = default;
};

// A view of a type in a graph; valid as long as the graph.
struct Type {
  DType dtype = DType::f32;
  std::span<const Dim> dims;

  std::size_t rank() const { return dims.size(); }
  std::int64_t elements() const;
  std::int64_t bytes() const { return elements() * size_in_bytes(dtype); }
  // Position of `index` among the dims, or -1.
  int position(Symbol index) const;
  bool has(Symbol index) const { return position(index) >= 0; }
  // REQUIRES: has(index)
  std::int64_t size_of(Symbol index) const;
};

// The largest value a plan may have, in bytes. Keeps every byte count within 64 bits, with room for
// sums over many values.
constexpr std::int64_t kLargestValueBytes = std::int64_t{1} << 56;

// The most indices a value may have: within what a signature can number.
constexpr std::size_t kLargestRank = 64;

std::string print(const Type& type, const Symbols& symbols);                   // f32[b=64,d=784]
std::string print_indices(std::span<const Dim> dims, const Symbols& symbols);  // [b, d]

}  // namespace weft::plan
