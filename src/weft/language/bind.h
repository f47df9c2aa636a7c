// weft/language/bind.h -- from a model's text to its plan.
//
//   BindOptions options{.sizes = {{"b", 8}}};
//   WEFT_TRY(bound, bind(catalog, "gpt2", options));
//   // bound.graph: inputs, parameters and every operator, types inferred; bound.graph.outputs()
//
// Binding resolves every name: sizes get their numbers and tensors their values. Each layer call is
// expanded inline with its own parameters, and aggregates become contractions. The result is the
// logical plan of one device, without layouts and communication.
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
  Span span;  // if set by the statement
};

struct BindOptions {
  Mode mode = Mode::infer;
  std::vector<SizeOverride> sizes;
  plan::DType precision = plan::DType::f32;  // dtype of tensors declared without OF
  std::int64_t plan_limit = 1'000'000;       // maximum number of nodes, against a runaway REPEAT
  std::function<bool()> interrupted;         // polled during binding; true cancels it
};

struct BoundSize {
  std::string name;
  std::int64_t size = 0;
};

// A state that the forward pass updates: batch norm's running statistics, or a STATE named in
// UPDATE.
struct StateUpdate {
  plan::ValueId state, next;
};

struct BoundModel {
  plan::Graph graph;
  std::vector<BoundSize> sizes;      // in order of declaration
  std::vector<StateUpdate> updates;  // in train mode
};

// `model` is the name in the statement; errors about the name point there. Errors inside the text
// of the model or a layer carry that text.
Result<BoundModel> bind(const Catalog& catalog, const syntax::Name& model, const BindOptions& options);

// Binds a definition that is not in the catalog yet.
Result<BoundModel> bind(const Catalog& catalog, const ModelDefinition& model, const BindOptions& options);

// Binds a layer with its default sizes, as a check. Succeeds unchecked if an argument's index has
// no default.
Status try_layer(const Catalog& catalog, const LayerDefinition& layer, const BindOptions& options);

}  // namespace weft::language
