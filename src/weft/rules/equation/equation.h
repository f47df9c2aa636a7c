// weft/rules/equation/equation.h -- an equation between two small graphs in the field's own vocabulary.
//
//   i1[2,4], i4[4,4]:   relu(matmul(i1, i4))  =  matmul{act=relu}(i1, i4)
//
// TASO, TENSAT, Unity and CoCoNet state their rules by position: a matmul multiplies the second dim
// of one matrix with the first of another, a convolution's groups follow from its operands' sizes, a
// split cuts where the latest concat joined. Weft's plans go by index names instead. An equation
// keeps the field's way, so that its rule files can be judged and rules of its kind generated; at
// given sizes both sides become plans (see algebra.h), and there Weft's own operators decide.
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
  // one local array a rank
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
std::optional<Verb> find_verb(std::string_view name);  // add and mul are ewadd and ewmul
std::span<const std::string_view> verb_names();
bool is_constant(Verb verb);           // const_eye and its like: no operands
std::size_t operand_count(Verb verb);  // of concat the fewest, which is 1

enum class ReduceKind : std::uint8_t { sum, mean, max, min };

// Attributes of all verbs together; a verb reads those it has.
struct Details {
  std::array<std::int32_t, 2> kernel = {0, 0};  // 0: any
  std::array<std::int32_t, 2> stride = {1, 1};
  bool same_padding = true;
  bool then_relu = false;       // act: relu
  std::int32_t axis = 0;        // of concat, split, shard, gather, partition ..: the dim; sum: -1 is all
  std::int32_t other_axis = 0;  // all_to_all: the dim that is joined; `axis` is cut
  std::int32_t parts = 2;       // of split; degree of Unity's operators
  bool evenly = false;          // split: into equal parts where no concat joined; else that is ill-typed
  std::vector<std::int32_t> order = {};  // transpose: the permutation; empty: reversed
  bool materialize = false;
  bool spreads = false;  // elementwise: an operand without dims is spread over the other, as numpy does
  ReduceKind kind = ReduceKind::sum;
  std::int32_t root = 0, shift = 0;
  double factor = 1;
  bool factor_is_one_over_ranks = false;
  std::vector<std::vector<std::int32_t>> groups = {};  // of ranks; empty: all are one group
  std::vector<std::int64_t> sizes = {};                // of a constant, once known from its context

  friend bool operator==(const Details&, const Details&) = default;
};

// Result `result` of operation `operation` on the same side; an input when `operation` is -1.
struct Operand {
  std::int32_t operation = -1;
  std::int32_t result = 0;  // of an input: which input

  friend bool operator==(const Operand&, const Operand&) = default;
  friend auto operator<=>(const Operand&, const Operand&) = default;
};

struct Operation {
  Verb verb = Verb::identity;
  std::vector<Operand> operands;
  Details details;

  friend bool operator==(const Operation&, const Operation&) = default;
};

std::size_t result_count(const Operation& operation);  // `parts` of a split, else 1

// What the ranks hold of an input, for equations on a mesh.
enum class Holding : std::uint8_t { single, local, replicated, sharded };

struct EquationInput {
  std::string name;  // i7
  std::vector<std::int64_t>
      example;  // a shape at which the equation makes sense; of all ranks together when sharded
  Holding holding = Holding::single;
  std::int32_t sharded_dim = 0;
};

struct Equation {
  std::string id;
  std::vector<EquationInput> inputs;
  std::vector<Operation> source, target;
  std::vector<std::array<Operand, 2>> outputs;  // source's, target's: equal
  std::vector<std::int32_t> ranks;              // rank counts it is said to hold for; empty: no mesh

  bool distributed() const { return !ranks.empty(); }
};

// Fails unless every operand and output refers to something before it, with the right number of operands.
Status check_form(const Equation& equation);

// Of a side that uses one result very often, the later uses are printed as %4.0.
std::string print(const Equation& equation);  // relu(matmul(i1, i4)) = matmul{act=relu}(i1, i4)

}  // namespace weft::equation
