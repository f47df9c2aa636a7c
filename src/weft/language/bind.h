// weft/language/bind.h -- from a model's text to its plan.
//
//   BindOptions options{.sizes = {{"b", 8}}};
//   WEFT_TRY(bound, bind(catalog, "gpt2", options));
//   // bound.graph: inputs, parameters and every operator, types inferred; bound.graph.outputs()
//
// Binding gives every name a meaning: sizes get their numbers, tensors their values, layers are
// unfolded with parameters of their own, aggregates become contractions. What it returns is the
// logical plan of one device; it holds no layouts and no communication.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/language/catalog.h"
#include "weft/plan/graph/graph.h"

namespace weft::language {

enum class Mode : std::uint8_t { infer, train };  // dropout and batch norm differ

struct SizeOverride {
  std::string name;
  std::int64_t size = 0;
  Span span;  // where the statement gives it
};

struct BindOptions {
  Mode mode = Mode::infer;
  std::vector<SizeOverride> sizes;
  plan::DType precision = plan::DType::f32;  // of tensors declared without OF
  std::int64_t plan_limit = 1'000'000;       // nodes; a runaway REPEAT ends here
  std::function<bool()> interrupted;         // asked now and then; true ends the binding
};

struct BoundSize {
  std::string name;
  std::int64_t size = 0;
};

// A state that the forward pass renews: batch norm's running statistics, what UPDATE names.
struct StateUpdate {
  plan::ValueId state, next;
};

struct BoundModel {
  plan::Graph graph;
  std::vector<BoundSize> sizes;      // in the order declared
  std::vector<StateUpdate> updates;  // in train mode
};

// `model` is where the statement names the model: errors about its name point there. Errors inside
// the model's or a layer's own text carry that text.
Result<BoundModel> bind(const Catalog& catalog, const syntax::Name& model, const BindOptions& options);

// Binds a definition that is not in the catalog yet.
Result<BoundModel> bind(const Catalog& catalog, const ModelDefinition& model, const BindOptions& options);

// Tries a layer at its default sizes. Succeeds without looking when an argument's index has none.
Status try_layer(const Catalog& catalog, const LayerDefinition& layer, const BindOptions& options);

}  // namespace weft::language
