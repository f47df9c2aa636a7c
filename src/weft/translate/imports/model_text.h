// weft/translate/imports/model_text.h -- a model under construction: layers, a model that calls them, and what follows from both.
//
//   LayerText mlp{"mlp", "x[b, s, d]"};
//   mlp.size("f", 11008);
//   mlp.parameter("up", {"d", "f"}, "normal(0, 0.02)", turned("mlp.up_proj.weight"));
//   mlp.with("u", "SELECT silu(sum(x * up)) FROM x, up GROUP BY b, s, f");
//   ...
//   model.call(mlp, "mlp", "model.layers.{}.", 32);
//
// A parameter is declared once: its line in the text, its share of the count and its place in a checkpoint all
// come from there.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/translate/imports/imported.h"

namespace weft::imports {

// How a checkpoint has a parameter; see WeightSource.
struct Stored {
  std::string tensor;
  std::size_t inputs = 0;  // the first so many indices are a linear map's inputs; 0: in the parameter's order
  bool stacked = false;    // a tensor for each place along the first index
  std::vector<std::int64_t> view;  // given: it is seen so, and cut and ordered as follows
  std::size_t axis = 0;
  std::int64_t begin = 0;
  std::vector<std::size_t> order = {};
  bool pairs = false;
};

Stored same(std::string tensor);
// The weight of a linear map, [outputs, inputs] in PyTorch; the parameter's first `inputs` indices are inputs.
Stored turned(std::string tensor, std::size_t inputs = 1);
// The same of experts: a tensor each.
Stored turned_experts(std::string tensor);

struct TextSize {
  std::string name;
  std::int64_t value = 0;
  std::string text = {};  // "d / h", in place of the number
};

struct TextParameter {
  std::string name;
  std::vector<std::string> indices;
  std::string init;  // empty: zeros
  Stored stored;
  bool state = false;
};

// What LAYER and MODEL have in common.
class LayerText {
 public:
  // `arguments`: "x[b, s, d]"; of a model: its INPUTs.
  LayerText(std::string name, std::string arguments, std::string comment = {});

  void arguments(std::string arguments) { arguments_ = std::move(arguments); }
  void size(std::string name, std::int64_t value, std::string text = {});
  void parameter(std::string name, std::vector<std::string> indices, std::string init, Stored stored);
  // Carried, not trained; one without a checkpoint's tensor may be all declaration: "mean[c] INIT ones".
  void state(std::string name, std::vector<std::string> indices = {}, Stored stored = {});
  // An entry of WITH; `prefix` stands before it: "REPEAT layers TIMES ".
  void with(std::string name, std::string query, std::string prefix = {});
  void select(std::string query);

  const std::string& name() const { return name_; }
  std::int64_t value(std::string_view size) const;                              // REQUIRES: it is one
  const std::vector<TextParameter>& parameters() const { return parameters_; }  // and states
  std::string print(std::string_view kind) const;                               // "LAYER" or "MODEL"

 private:
  struct Entry {
    std::string name, query, prefix;
  };
  std::string name_, arguments_, comment_;
  std::vector<TextSize> sizes_;
  std::vector<TextParameter> parameters_;
  std::vector<Entry> entries_;
  std::string select_;
};

class ModelText {
 public:
  ModelText(std::string name, std::string inputs, std::string comment);

  LayerText& body() { return body_; }
  // The layer's text stands before the model's.
  void layer(const LayerText& layer) { layers_.push_back(layer.print("LAYER")); }
  // A call in the body that is named `as`, so many times in a REPEAT, or once where `times` is 0. Its tensors begin
  // with `prefix`, whose {} is the number of the layer: `first` at the first repetition, `stride` more at the next.
  void call(const LayerText& layer, const std::string& as, const std::string& prefix, std::int64_t times,
            std::int64_t first = 0, std::int64_t stride = 1);

  // Fails when there are more parameters than can be counted.
  Result<Imported> finish(std::string architecture, std::vector<std::string> notes);

 private:
  void place(const LayerText& of, const TextParameter& parameter, std::string name, std::string tensor);

  std::string comment_;
  LayerText body_;
  std::vector<std::string> layers_;
  std::vector<WeightSource> weights_;
  std::int64_t count_ = 0;
  bool too_many_ = false;
};

}  // namespace weft::imports
