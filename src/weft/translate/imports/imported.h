// weft/translate/imports/imported.h -- a model that was another program's: as WeftQL, counted, and where its weights lie.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weft::imports {

// Where a parameter's numbers stand in a checkpoint of the program that the model comes from.
//
//   attention.3.wq[d, h, e]   model.layers.3.self_attn.q_proj.weight  seen as [h * e, d], turned round
//   attention.0.wv[d, h, e]   h.0.attn.c_attn.weight                  seen as [d, 3, d], the part 2 of dim 1
//   experts.0.gate[x, d, f]   ..experts.{}.w1.weight                  eight tensors, one a place along x
//
// The tensor is seen as `view`, row-major; of dim `axis` the places from `begin` on are taken, `count` of them;
// then the dims are put in `order`. Features that are stored as pairs side by side are put a half apart.
struct WeightSource {
  std::string parameter;            // of the model's text, or a STATE
  bool state = false;               // which counts as no parameter
  std::vector<std::int64_t> shape;  // of the parameter
  std::string tensor;               // "{}" stands for the place along the first index where `stacked`
  std::int64_t stacked = 0;         // tensors, one after the other; 0: one tensor is the parameter
  std::vector<std::int64_t> view;
  std::size_t axis = 0;
  std::int64_t begin = 0, count = 0;
  std::vector<std::size_t> order;
  bool pairs = false;  // along the last index
};

struct Imported {
  std::string name;          // of the model
  std::string architecture;  // "llama": what the file says it is
  std::string text;          // CREATE LAYER ..; CREATE MODEL ..;
  std::int64_t parameters = 0;
  std::vector<std::string> notes;  // what was left out, and what the text assumes
  std::vector<WeightSource> weights;
};

}  // namespace weft::imports
