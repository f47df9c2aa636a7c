// weft/rules/equation/equation.h -- an equation between two small graphs, in the form used by TASO.
//
//   i1[2,4], i4[4,4]:   relu(matmul(i1, i4))  =  matmul{act=relu}(i1, i4)
//
// TASO, TENSAT, Unity and CoCoNet state their rules by position: a matmul multiplies the second dim
// of one matrix with the first of another, a convolution's groups follow from its operands' sizes,
// a split cuts where the latest concat joined. Weft's plans use index names instead. An equation
// keeps the positional form, so that published rule files can be judged and similar rules
// generated. At given sizes both sides become plans (see algebra.h), and Weft's own operators
// decide.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft::equation {

enum class Verb : std::uint8_t {
  // TASO and TENSAT
  matmul,
  conv2d,
  ewadd,
  ewmul,
  smul,
  relu,
  concat,
  split,
  transpose,
  pool_max,
  pool_avg,
  enlarge,
  identity,
  const_eye,
  const_conv_id,
  const_pool,
  const_one,
  // Unity
  linear,
  partition,
  combine,
  replicate,
  reduce,
  // one local array per rank
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  broadcast,
  permute,
  shard,
  sub,
  scale,
  square,
  sum,
};

std::string_view name(Verb verb);
std::optional<Verb> find_verb(std::string_view name);  // also accepts add and mul for ewadd and ewmul
std::span<const std::string_view> verb_names();
bool is_constant(Verb verb);           // const_eye and the like: no operands
std::size_t operand_count(Verb verb);  // for concat the minimum, 1

enum class ReduceKind : std::uint8_t { sum, mean, max, min };

// The attributes of all verbs; a verb reads those it has.
struct Details {
  std::array<std::int32_t, 2> kernel = {0, 0};  // 0: any
  std::array<std::int32_t, 2> stride = {1, 1};
  bool same_padding = true;
  bool then_relu = false;       // activation relu
  std::int32_t axis = 0;        // dim of concat, split, shard, gather, partition ..; sum: -1 is all
  std::int32_t other_axis = 0;  // all_to_all: the dim that is joined; `axis` is sliced
  std::int32_t parts = 2;       // split: number of parts; Unity's operators: degree
  bool evenly = false;          // split: into equal parts if there is no joint; if false, that is ill-typed
  std::vector<std::int32_t> order = {};  // transpose: the permutation; empty: reversed
  bool materialize = false;
  bool spreads = false;  // elementwise: a scalar operand is broadcast, as in NumPy
  ReduceKind kind = ReduceKind::sum;
  std::int32_t root = 0, shift = 0;
  double factor = 1;
  bool factor_is_one_over_ranks = false;
  std::vector<std::vector<std::int32_t>> groups = {};  // of ranks; empty: one group of all
  std::vector<std::int64_t> sizes = {};                // of a constant, once derived from its context

  friend bool operator==(const Details&, const Details&) = default;
};

// Result `result` of operation `operation` on the same side; an input if `operation` is -1.
struct Operand {
  std::int32_t operation = -1;
  std::int32_t result = 0;  // the number of an input

  friend bool operator==(const Operand&, const Operand&) = default;
  friend auto operator<=>(const Operand&, const Operand&) = default;
};

struct Operation {
  Verb verb = Verb::identity;
  std::vector<Operand> operands;
  Details details;

  friend bool operator==(const Operation&, const Operation&) = default;
};

std::size_t result_count(const Operation& operation);  // `parts` of a split, 1 for others

// How the ranks hold an input, in equations on a mesh.
enum class Holding : std::uint8_t { single, local, replicated, sharded };

struct EquationInput {
  std::string name;  // i7
  std::vector<std::int64_t>
      example;  // a shape at which the equation is well typed; the global shape if sharded
  Holding holding = Holding::single;
  std::int32_t sharded_dim = 0;
};

struct Equation {
  std::string id;
  std::vector<EquationInput> inputs;
  std::vector<Operation> source, target;
  std::vector<std::array<Operand, 2>> outputs;  // pairs of equal operands: source's, target's
  std::vector<std::int32_t> ranks;              // rank counts for which it is stated; empty: no mesh

  bool distributed() const { return !ranks.empty(); }
};

// Fails unless every operand and output refers to an earlier value, with the right number of
// operands.
Status check_form(const Equation& equation);

// If a side uses one result very often, later uses are printed as %4.0.
std::string print(const Equation& equation);  // relu(matmul(i1, i4)) = matmul{act=relu}(i1, i4)

}  // namespace weft::equation
