// weft/rules/rule/left_tests.h -- a rule's left side as a list of tests, from its root outwards.
//
//   p = contract(x, v), q = contract(x, w)        node 0: contract of 2        makes value 0, p
//                                                 take an operand of node 0    makes value 1, x
//                                                 take another                 makes value 2, v
//                                                 node 1: a reader of value 1
//                                                 node 1: contract of 2, not node 0   makes value 3, q
//                                                 node 1 holds value 1
//                                                 take another operand         makes value 4, w
//
// Nodes and values are numbered in the order they are reached, so that rules with the same
// structure at the root begin with the same tests, whatever their names.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/rules/rule/rule.h"

namespace weft::rule {

struct Test {
  enum class Kind : std::uint8_t {
    op,        // `node` has this operator and number of operands; adds its results
    op_class,  // the same for an operator variable's class
    literal,   // attribute `position` of `node` is `term`
    differ,    // `node` and node `value` are different
    take,      // adds operand `position` of `node` as a value; if commutative, any unused operand
    hold,      // operand `position` of `node` is `value`; if commutative, any unused operand
    producer,  // `value` is result `position` of some node; adds that node
    reader,    // adds a reader of `value`
  };
  Kind kind = Kind::op;
  bool commutes = false;  // take and hold: operands may be in any order
  std::uint16_t node = 0, value = 0, position = 0;
  std::uint16_t operands = 0, results = 0;  // op and op_class
  const plan::Operator* op = nullptr;
  OperatorVariable::Class of = OperatorVariable::Class::unary;
  AttributeTerm term;

  friend bool operator==(const Test&, const Test&) = default;
};

struct LeftTests {
  std::vector<Test> tests;            // empty if the left side cannot be matched
  std::vector<std::uint16_t> nodes;   // node of the left side -> its number among the tests
  std::vector<std::uint16_t> values;  // likewise
};

// No tests if the left side is not connected or too large.
LeftTests left_tests(const Rule& rule);

// The node of the rule's first output, the root of a match. REQUIRES: that output is not an input
std::size_t root_of(const Rule& rule);

// Whether the operator is commutative: add, mul, contract ..
bool commutes(const plan::Operator& op);

// Whether a variable of this class may stand for the operator.
bool is_of_class(const plan::Operator& op, OperatorVariable::Class of);

}  // namespace weft::rule
