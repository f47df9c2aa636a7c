// weft/plan/ops/interpret.h -- runs a plan by its operators' reference semantics.
//
//   WEFT_TRY(outputs, interpret<double>(graph, [&](std::string_view name) { return &tensors.at(name); }));
//
// Slow and exact: the reference for kernels, rules and distributed plans. It computes only what the
// outputs depend on, and frees a value after its last use.
#pragma once
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"
#include "weft/plan/ops/evaluation.h"

namespace weft::ops {

// Looks up the value of an input, parameter or state by name; null if there is none. The tensor
// must outlive the call.
template <class T>
using Sources = std::function<const Tensor<T>*(std::string_view name)>;

// The most elements one value may have: guards against running a plan meant for a cluster.
constexpr std::int64_t kMostElements = std::int64_t{1} << 28;

// The plan's outputs, in order. Fails if a source is missing or its sizes differ from its type, or
// if a value would have more than `max_elements`.
template <class T>
Result<std::vector<Tensor<T>>> interpret(const plan::Graph& graph, const Sources<T>& sources,
                                         const Numbers<T>& numbers = {},
                                         std::int64_t max_elements = kMostElements);

// Runs one node on the given operands.
template <class T>
std::vector<Tensor<T>> evaluate(const plan::NodeView& node, std::span<const Tensor<T>* const> inputs,
                                const Numbers<T>& numbers = {});

}  // namespace weft::ops
