// test/unit/case/ops_case.h -- one operator on operands of given types, as a row of a table.
//
//   contract | f32[b=2,d=3] | f32[d=3,f=2] | {to=[b,f]}
//
// A note after a type says what its elements are: "f32[d=3] > 0" positive reals, "i32[b=4] < 7"
// integers from -1 to 7, so that some positions are out of range.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/random.h"
#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/signature.h"
#include "weft/plan/ops/evaluation.h"
#include "weft/plan/ops/interpret.h"

namespace weft::ops {

struct Case {
  std::string op;
  std::vector<std::string> operands;
  std::string attributes = {};  // including its braces
  int results = 1;
};

// Every operator that computes something, on shapes that cover corner cases: sizes of one, operands
// that lack indices, differing index orders, groups, strides, padding.
std::span<const Case> all_cases();

// Reads such a table, one line each: operator[:results] | operand | .. | {attributes}. Several
// operators may share a line.
std::vector<Case> read_cases(std::string_view table);

std::vector<std::string> parts_of(std::string_view text, std::string_view separator);

// The case as a plan: inputs x0, x1, .. and outputs y0, y1, ..; the operator is the last node.
std::string text_of(const Case& c);
plan::Graph graph_of(const Case& c);  // throws if the text is invalid

// The same case with every index of another size, from 1 to `most`, everywhere it occurs. Nothing
// if the operator does not accept those sizes.
std::optional<Case> resized(const Case& c, std::int64_t most, Random& random);

// Elements as the operand's note says. Reals stay away from zero, where gradients may be
// discontinuous.
template <class T>
Tensor<T> random_tensor(std::string_view operand, const plan::Type& type, const Numbers<T>& numbers,
                        Random& random);

template <class T>
using Tensors = std::map<std::string, Tensor<T>, std::less<>>;

// One per operand, under the names of text_of.
template <class T>
Tensors<T> random_inputs(const Case& c, const plan::Graph& graph, const Numbers<T>& numbers, Random& random);

// The outputs of the graph. Throws if it cannot be interpreted.
template <class T>
std::vector<Tensor<T>> outputs_of(const plan::Graph& graph, const Tensors<T>& inputs,
                                  const Numbers<T>& numbers = {});

// One way to split a node along one loop.
struct Slicing {
  Symbol index;
  std::vector<std::int8_t> operands;          // the dim to slice, or -1: replicated
  std::vector<std::int8_t> results;           // the sliced result dim, or -1: partial or replicated
  plan::Monoid partial = plan::Monoid::none;  // the monoid by which partial results combine
  bool positional = false;
};

// One slicing for each loop that may be split.
std::vector<Slicing> legal_slicings(const plan::Signature& signature);

}  // namespace weft::ops
