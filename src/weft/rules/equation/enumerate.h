// weft/rules/equation/enumerate.h -- enumerates all graphs with a given number of operations.
//
//   level 3 =  f(A)      A of level 2
//              f(A, B)   A of level 2 and B an input, or B a part of A, or A and B both of level 1, ..
//
// The shelf holds the building blocks of larger graphs: the terms of lower levels that no rule
// rewrites. Each graph is enumerated once. Shared parts count once, so A and B together reach one
// operation less than f(A, B).
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "weft/rules/equation/meaning.h"
#include "weft/rules/equation/term.h"

namespace weft::equation {

// Receives every well-typed term of a level, with its signature. For an operation with several
// results it receives only the first.
class TermSink {
 public:
  virtual ~TermSink() = default;
  virtual void take(std::uint16_t head, std::array<TermId, 2> operands, const Signature& signature) = 0;
  virtual void progress(double done) = 0;  // from 0 to 1
};

class Shelf {
 public:
  Shelf(const TermTable& terms, Meaning& meaning);

  void put(TermId id);  // at the level of the number of operations it reaches
  const std::vector<TermId>& level(std::size_t k) const { return levels_[k]; }
  // `in_order`: only graphs whose inputs are numbered without gaps (see TermTable::in_order).
  void enumerate(std::int32_t level, bool in_order, TermSink& sink);

 private:
  struct Way {  // an operation that applies to two terms of given types
    std::uint16_t head;
    bool swapped;
    const Signature* signature;
  };
  const std::vector<Way>& ways(TypeId a, TypeId b);  // in both orders; b is kNoType for one operand
  void apply(TermId a, TermId b, bool in_order, TermSink& sink);
  void with_inputs_and_parts(TermId a, bool in_order, TermSink& sink);
  void with_level(TermId a, std::size_t level, std::int32_t together, bool in_order, TermSink& sink);
  void with_sharers(TermId a, std::int32_t together, bool in_order, TermSink& sink);

  const TermTable& terms_;
  Meaning& meaning_;
  std::vector<std::vector<TermId>> levels_;
  std::vector<std::unordered_map<TypeId, std::vector<TermId>>> by_type_;  // by level
  std::vector<std::vector<TypeId>> types_;                                // by level, ascending
  std::unordered_map<TermId, std::vector<TermId>> users_;                 // shelved terms, by node they reach
  std::vector<bool> shelved_;
  std::unordered_map<std::uint64_t, std::vector<Way>> ways_;
};

}  // namespace weft::equation
