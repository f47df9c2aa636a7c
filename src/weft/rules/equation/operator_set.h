// weft/rules/equation/operator_set.h -- what the generator builds graphs from.
//
//   inputs      a[2,3] x3, b[3,3] x3, .. c[] x1        how many different ones of each shape
//   operations  matmul, ewadd, conv2d{3x3}, ..         every attribute fixed
//   constants   const_eye[3,3], ..                     count as an operation, as the field counts them
//
// A preset is the operator set of one of the field's generators. Shapes are as small as the meaning of
// the operations permits: the generator only finds candidates, the prover judges them over many shapes.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/rules/equation/equation.h"

namespace weft::equation {

// `count` inputs that differ in nothing but their values.
struct InputKind {
  std::string letter;               // their names begin with it: x1, x2, ..
  std::vector<std::int64_t> sizes;  // of all ranks together when sharded
  std::int32_t count = 1;
  Holding holding = Holding::single;
  std::int32_t sharded_dim = 0;
  bool weight = false;  // what is made of these alone may be a convolution's weight, and not its image
};

// An operation but for its operands.
struct OperationKind {
  Verb verb = Verb::identity;
  Details details;
  std::int32_t operands = 1;
  std::int32_t results = 1;
  bool commutative = false;                    // the generator writes one order only, and proves that it may
  std::vector<std::int64_t> sizes = {};        // of a constant, which has no operands to tell
  std::int32_t least_rank = 0, most_rank = 8;  // of its first operand
  bool second_is_weight = false;
  bool must_change_shape = false;  // not applied where it would do nothing
};

struct OperatorSet {
  std::string name;
  std::vector<InputKind> inputs;
  std::vector<OperationKind> operations;
  std::vector<std::int32_t> ranks;  // meshes on which graphs are run, all at once; empty: no mesh

  bool distributed() const { return !ranks.empty(); }
};

// "taso", "unity" or "collectives".
Result<OperatorSet> preset(std::string_view name);

// Fails when the set has no inputs or operations, or an operation has operands the generator cannot place.
Status check(const OperatorSet& set);

}  // namespace weft::equation
