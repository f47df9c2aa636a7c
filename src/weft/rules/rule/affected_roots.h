// weft/rules/rule/affected_roots.h -- finds the roots whose matches may contain a changed node.
//
//   rule: relu(add(x, y))       a changed add:   every relu that reads it
//   rule: p = contract(x, v),   a changed contract may be q: every contract that reads one of its operands
//         q = contract(x, w)
//
// The tests of a left side lead from its root outwards; reversed, they lead from any of its nodes
// to the root. Rules with equal reversed paths share them in a trie.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/rules/rule/draft.h"
#include "weft/rules/rule/left_tests.h"

namespace weft::rule {

class Climb {
 public:
  void add(const LeftTests& tests);

  // Appends to `roots` the roots from which a match may reach `node`, unordered, with possible
  // duplicates.
  void roots_of(const Draft& draft, plan::NodeId node, std::vector<plan::NodeId>& roots) const;

 private:
  // The step to the node that the tests reached before.
  enum class Step : std::uint8_t { start, reader_of_result, reader_of_operand, producer_of_operand };
  struct Way {
    Step step = Step::start;
    const plan::Operator* op = nullptr;  // null: any
    bool is_root = false;
    std::vector<std::uint32_t> next;

    bool leads_to(const plan::Operator* found) const { return op == nullptr || op == found; }
  };
  class Walk;

  std::uint32_t follow(std::uint32_t from, Step step, const plan::Operator* op);

  std::vector<Way> ways_ = {Way{}};  // the first is the root of the trie
};

}  // namespace weft::rule
