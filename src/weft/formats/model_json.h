// weft/formats/model_json.h -- model graphs in the `weft-graph-1` format as plans.
//
//   {"format": "weft-graph-1", "name": "block", "dtype": "f32",
//    "inputs":  [{"id": "x", "shape": [8, 512]}],
//    "weights": [{"id": "w", "shape": [512, 256]}],
//    "nodes":   [{"id": "n0", "op": "matmul", "in": ["x", "w"], "attrs": {"act": "relu"},
//                 "shape": [8, 256]}],
//    "outputs": ["n0"]}
//
//   %0 = input {name=x, type=f32[b=8,d=512]}
//   %1 = parameter {name=w, type=f32[d=512,n=256], init=normal, a=0, b=0.0441942}
//   %2 = contract %0, %1 {to=[b,n]} : f32[b=8,n=256] @n0
//   %3 = relu %2 : f32[b=8,n=256] @n0
//   return n0=%3
//
// The file identifies dims by position, a plan by name: see model_names.h. The plan is for
// inference: dropout returns its operand, and batchnorm uses the given mean and variance. Weights
// start as normal(0, 1/sqrt(fan in)), so that magnitudes stay stable through a hundred layers;
// scales of norms start near 1. Every node's shape is checked against the one that the file states.
// Errors name the node.
#pragma once
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"

namespace weft::formats {

Result<plan::Graph> parse_model_json(std::string_view text);

// Errors begin with the path.
Result<plan::Graph> read_model_json(const std::string& path);

}  // namespace weft::formats
