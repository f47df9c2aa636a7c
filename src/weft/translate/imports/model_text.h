// weft/translate/imports/model_text.h -- builds a model's WeftQL text and weight sources.
//
//   LayerText mlp{"mlp", "x[b, s, d]"};
//   mlp.size("f", 11008);
//   mlp.parameter("up", {"d", "f"}, "normal(0, 0.02)", turned("mlp.up_proj.weight"));
//   mlp.with("u", "SELECT silu(sum(x * up)) FROM x, up GROUP BY b, s, f");
//   ...
//   model.call(mlp, "mlp", "model.layers.{}.", 32);
//
// A parameter is declared once. Its line in the text, its share of the count and its source in a
// checkpoint all derive from that declaration.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/translate/imports/imported.h"

namespace weft::imports {

// How a parameter is stored in a checkpoint; see WeightSource.
struct Stored {
  std::string tensor;
  std::size_t inputs = 0;          // a linear map's inputs are the first `inputs` indices; 0: no transpose
  bool stacked = false;            // one tensor per position along the first index
  std::vector<std::int64_t> view;  // if set, the tensor is viewed so; then sliced and permuted
  std::size_t axis = 0;
  std::int64_t begin = 0;
  std::vector<std::size_t> order = {};
  bool pairs = false;
};

Stored same(std::string tensor);
// The weight of a linear map, stored as [outputs, inputs] as in PyTorch. The parameter's first
// `inputs` indices are the inputs.
Stored turned(std::string tensor, std::size_t inputs = 1);
// The same for experts, one tensor per expert.
Stored transposed_experts(std::string tensor);

struct TextSize {
  std::string name;
  std::int64_t value = 0;
  std::string text = {};  // an expression such as "d / h", instead of the number
};

struct TextParameter {
  std::string name;
  std::vector<std::string> indices;
  std::string init;  // empty: zeros
  Stored stored;
  bool state = false;
};

// The common parts of a LAYER and a MODEL.
class LayerText {
 public:
  // `arguments`: "x[b, s, d]"; for a model, its INPUTs.
  LayerText(std::string name, std::string arguments, std::string comment = {});

  void arguments(std::string arguments) { arguments_ = std::move(arguments); }
  void size(std::string name, std::int64_t value, std::string text = {});
  void parameter(std::string name, std::vector<std::string> indices, std::string init, Stored stored);
  // A STATE: carried between steps, not trained. Without a checkpoint tensor, `name` may be the
  // whole declaration: "mean[c] INIT ones".
  void state(std::string name, std::vector<std::string> indices = {}, Stored stored = {});
  // An entry of WITH, after `prefix`, such as "REPEAT layers TIMES ".
  void with(std::string name, std::string query, std::string prefix = {});
  void select(std::string query);

  const std::string& name() const { return name_; }
  std::int64_t value(std::string_view size) const;                              // REQUIRES: the size exists
  const std::vector<TextParameter>& parameters() const { return parameters_; }  // including states
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
  // The layer's text comes before the model's.
  void layer(const LayerText& layer) { layers_.push_back(layer.print("LAYER")); }
  // Adds a call to the body under the name `as`: in a REPEAT of `times`, or once if `times` is 0.
  // Its tensor names begin with `prefix`, in which {} is the layer number: `first` in the first
  // repetition, then increasing by `stride`.
  void call(const LayerText& layer, const std::string& as, const std::string& prefix, std::int64_t times,
            std::int64_t first = 0, std::int64_t stride = 1);

  // Fails if the parameter count overflows.
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
