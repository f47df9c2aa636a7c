// weft/translate/imports/imported.h -- an imported model: WeftQL text and sources of its weights.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weft::imports {

// Where a parameter is stored in a checkpoint of the original program.
//
//   attention.3.wq[d, h, e]   model.layers.3.self_attn.q_proj.weight  viewed as [h * e, d], transposed
//   attention.0.wv[d, h, e]   h.0.attn.c_attn.weight                  viewed as [d, 3, d], slice 2 of dim 1
//   experts.0.gate[x, d, f]   ..experts.{}.w1.weight                  eight tensors, one per position of x
//
// The tensor is viewed as `view`, row-major. Along dim `axis`, `count` positions from `begin` on
// are taken. Then the dims are permuted to `order`. Rotary features that are stored as interleaved
// pairs are converted to two halves.
struct WeightSource {
  std::string parameter;            // the model's PARAMETER or STATE
  bool state = false;               // a STATE, not counted as a parameter
  std::vector<std::int64_t> shape;  // of the parameter
  std::string tensor;               // if `stacked`, "{}" is the position along the first index
  std::int64_t stacked = 0;         // number of tensors to concatenate; 0: one tensor
  std::vector<std::int64_t> view;
  std::size_t axis = 0;
  std::int64_t begin = 0, count = 0;
  std::vector<std::size_t> order;
  bool pairs = false;  // interleaved pairs along the last index
};

struct Imported {
  std::string name;          // of the model
  std::string architecture;  // the file's model type, such as "llama"
  std::string text;          // CREATE LAYER ..; CREATE MODEL ..;
  std::int64_t parameters = 0;
  std::vector<std::string> notes;  // what was skipped, and assumptions of the text
  std::vector<WeightSource> weights;
};

}  // namespace weft::imports
