// weft/plan/graph/signature.h -- how an operator behaves along each of its indices.
//
//   contract x[b,d], w[d,f] -> [b,f]      b  parallel   x.0       -> y.0
//                                         f  parallel   w.1       -> y.1
//                                         d  reduced+   x.1, w.0  ->  (summed)
//
// An operator is a loop nest. A loop is *parallel* if every result keeps it: a slice of the
// operands gives that slice of the results. It is *reduced* if the results combine it by a monoid:
// slices give addends. With several results, some may keep a parallel loop while others lack it and
// combine it by its monoid: a slice of the queries gives that slice of their gradient, and addends
// of the keys' gradient. It is *whole* if it must not be sliced. All parallelism in Weft is derived
// from this table; no operator has parallel code of its own.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/symbols.h"

namespace weft::plan {

enum class Role : std::uint8_t { parallel, reduced, whole };
enum class Monoid : std::uint8_t { none, sum, max, min };

std::string_view name(Role role);
std::string_view name(Monoid monoid);

struct Loop {
  Symbol index;  // its name in EXPLAIN and in HINT SLICE
  std::int64_t size = 0;
  Role role = Role::whole;
  Monoid monoid = Monoid::none;  // for reduced loops, and for results that lack a parallel one
  // True if a slice must know where it starts: positions, rotary angles, dropout counters, the rows
  // of a gathered table.
  bool positional = false;
  std::vector<std::int8_t> operands;  // operands[i]: the dim of operand i that this loop walks, or -1
  std::vector<std::int8_t> results;   // likewise for the results
};

struct Signature {
  std::vector<Loop> loops;

  const Loop* find(Symbol index) const;
};

}  // namespace weft::plan
