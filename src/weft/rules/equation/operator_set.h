// weft/rules/equation/operator_set.h -- the building blocks of the generator.
//
//   inputs      a[2,3] x3, b[3,3] x3, .. c[] x1        how many different ones of each shape
//   operations  matmul, ewadd, conv2d{3x3}, ..         every attribute fixed
//   constants   const_eye[3,3], ..                     count as an operation, as in TASO
//
// A preset is the operator set of a published generator. Shapes are as small as the operations'
// semantics permit: the generator only finds candidates, and the prover judges them over many
// shapes.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/rules/equation/equation.h"

namespace weft::equation {

// `count` inputs that differ only in their values.
struct InputKind {
  std::string letter;               // prefix of their names: x1, x2, ..
  std::vector<std::int64_t> sizes;  // global sizes if sharded
  std::int32_t count = 1;
  Holding holding = Holding::single;
  std::int32_t sharded_dim = 0;
  bool weight = false;  // terms of only such inputs may be a convolution's weight, but not its image
};

// An operation without operands.
struct OperationKind {
  Verb verb = Verb::identity;
  Details details;
  std::int32_t operands = 1;
  std::int32_t results = 1;
  bool commutative = false;                    // enumerate one operand order only, once proven
  std::vector<std::int64_t> sizes = {};        // of a constant, which has no operands
  std::int32_t least_rank = 0, most_rank = 8;  // of its first operand
  bool second_is_weight = false;
  bool must_change_shape = false;  // not applied where it would have no effect
};

struct OperatorSet {
  std::string name;
  std::vector<InputKind> inputs;
  std::vector<OperationKind> operations;
  std::vector<std::int32_t> ranks;  // meshes on which every graph is run; empty: no mesh

  bool distributed() const { return !ranks.empty(); }
};

// "taso", "unity" or "collectives".
Result<OperatorSet> preset(std::string_view name);

// Fails if the set has no inputs or operations, or an operation does not fit the generator's terms.
Status check(const OperatorSet& set);

}  // namespace weft::equation
