// weft/formats/model_json.h -- the field's model graphs (`weft-graph-1`) as plans.
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
// The file's dims go by place, a plan's by name: see model_names.h. The plan is the one of inference:
// dropout passes its operand on, batchnorm uses the mean and variance it is given. Weights start as
// normal(0, 1/sqrt(fan in)), so that numbers stay of one size through a hundred layers; what norms
// multiply by starts near 1. Every node's shape is checked against the one the file states, and
// wherever the file is wrong the error names the node.
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
