// weft/rules/equation/term.h -- the generator's graphs, with each value stored once (hash-consing).
//
//   id   head     operands           operations   inputs
//    0   a1                          0            {a1}
//    1   a2                          0            {a2}
//   20   ewadd    0, 1               1            {a1, a2}
//   47   relu     20                 2            {a1, a2}     relu(ewadd(a1, a2)): reaches nodes 20 and 47
//
// A term is an input, or one result of an operation on earlier terms; equal terms have the same id.
// The operations that a term reaches form a graph in which shared terms occur once, and its size is
// their number. The operands of a commutative operation are stored smaller first.
//
// `compare` orders terms totally: by the number of leaves and operations when written out as a
// tree, then by their outermost operation, then operand by operand. Replacing a part of a term by a
// smaller one makes the term smaller, so rewriting towards smaller terms terminates.
#pragma once
#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "weft/rules/equation/operator_set.h"

namespace weft::equation {

using TermId = std::uint32_t;
constexpr TermId kNoTerm = ~TermId{0};

// The most operations of a generated graph: far more than can be enumerated.
constexpr std::int32_t kMostOperators = 6;

struct Term {
  std::uint16_t head = 0;   // an input number, or the number of inputs plus an operation
  std::uint8_t result = 0;  // result number of that operation
  std::uint8_t reached = 0;
  std::uint16_t weight = 1;  // leaves and operations as a tree
  bool has_split = false;    // reaches an operation with several results
  bool alike = true;         // the same on every rank for all inputs
  std::array<TermId, 2> operands = {kNoTerm, kNoTerm};
  std::uint32_t type = 0;                      // shapes, see meaning.h
  std::uint64_t inputs = 0;                    // bit mask
  std::array<TermId, kMostOperators> nodes{};  // operations reached, by their first result; ascending

  std::size_t operand_count() const { return (operands[0] != kNoTerm) + (operands[1] != kNoTerm); }
  std::span<const TermId> reaches() const { return {nodes.data(), reached}; }
};

// The number of operations that two terms reach together.
std::int32_t reached_together(const Term& a, const Term& b);

class TermTable {
 public:
  TermTable(const OperatorSet& set, std::span<const std::uint32_t> input_types);  // one type per InputKind

  const OperatorSet& set() const { return set_; }
  std::size_t size() const { return terms_.size(); }
  std::uint16_t inputs() const { return inputs_; }
  const Term& operator[](TermId id) const { return terms_[id]; }

  bool is_input(std::uint16_t head) const { return head < inputs_; }
  const OperationKind& operation(std::uint16_t head) const { return set_.operations[head - inputs_]; }
  std::uint16_t head_of(std::size_t operation) const {
    return static_cast<std::uint16_t>(inputs_ + operation);
  }
  const InputKind& kind_of(std::uint16_t input) const { return set_.inputs[kinds_[input]]; }

  // The term as it would be stored, with its operands in order; adds nothing. If the graph has more
  // than kMostOperators operations, `reached` is that number plus one and there are no nodes.
  Term make(std::uint16_t head, std::uint8_t result, std::array<TermId, 2> operands) const;
  TermId find(const Term& term) const;  // kNoTerm if not found
  // Adds all results of its operation, with these types, unless present. Returns the id of `term`.
  TermId add(const Term& term, std::array<std::uint32_t, 2> types);

  // Removes all terms from `size` on, such as temporary ones.
  void shrink(std::size_t size);

  std::strong_ordering compare(TermId a, TermId b) const;
  std::strong_ordering compare(const Term& a, const Term& b) const;

  // Whether the inputs of each kind are x1, x2, .. without a gap. Of graphs that differ only in the
  // names of inputs, at least one satisfies this.
  bool in_order(std::uint64_t inputs) const;

  // Whether every result of every operation reached is used or is the term itself. If not, the
  // graph has additional outputs.
  bool is_closed(TermId id) const;
  bool is_closed(const Term& term) const;

  // Whether an operation with a weight may have these operands; true for all other operations.
  bool has_roles(std::uint16_t head, std::array<TermId, 2> operands) const;

  std::int64_t bytes() const;

 private:
  struct Key {
    std::uint32_t head_and_result;
    std::array<TermId, 2> operands;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  static Key key_of(const Term& term) {
    return {(static_cast<std::uint32_t>(term.head) << 8) | term.result, term.operands};
  }

  OperatorSet set_;
  std::uint16_t inputs_ = 0;
  std::vector<std::uint16_t> kinds_;
  std::vector<std::uint64_t> kind_masks_;
  std::uint64_t weights_ = 0;  // mask of inputs that are weights
  std::vector<Term> terms_;
  std::unordered_map<Key, TermId, KeyHash> ids_;
};

}  // namespace weft::equation
