// weft/language/catalog.h -- the objects that statements create and refer to by name.
//
// Models and layers are kept as parsed text. Sizes are only known at use, so a model is bound again
// for every requested batch size. A definition shares ownership of its text, so that error messages
// can quote it.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/language/syntax.h"
#include "weft/plan/cluster/cluster.h"

namespace weft::language {

struct BindOptions;

// A text and its syntax tree. Script::text and every name in it point into `text`.
struct ParsedText {
  std::shared_ptr<const std::string> text;
  syntax::Script script;
};

// Parses a copy of `text`.
Result<std::shared_ptr<const ParsedText>> parse_and_keep(std::string_view text);

struct ModelDefinition {
  std::shared_ptr<const ParsedText> source;
  const syntax::CreateModel* statement = nullptr;
  bool shipped = false;
};

struct LayerDefinition {
  std::shared_ptr<const ParsedText> source;
  const syntax::CreateLayer* statement = nullptr;
  bool shipped = false;
};

// A function is kept as its expression, which is expanded inline at every call.
struct FunctionDefinition {
  std::shared_ptr<const ParsedText> source;
  const syntax::CreateFunction* statement = nullptr;
  std::string usage;  // "softplus(x)"
};

// Ordered by name, so that the output of SHOW does not depend on the order of creation.
template <class T>
using Named = std::map<std::string, T, std::less<>>;

struct Catalog {
  Named<cluster::Device> devices;
  Named<cluster::Cluster> clusters;
  Named<cluster::Stack> stacks;             // software that trains; `weft` ships
  Named<std::vector<std::string>> origins;  // of clusters created from logs: measured values and assumptions
  Named<FunctionDefinition> functions;
  Named<LayerDefinition> layers;
  Named<ModelDefinition> models;
  // Shipped definitions that a user's CREATE shadows until that is dropped.
  Named<LayerDefinition> shadowed_layers;
  Named<ModelDefinition> shadowed_models;

  // Resolves a call in a layer or model; null if there is no such layer. Shipped layers call
  // shipped layers, even if shadowed.
  const LayerDefinition* find_layer(std::string_view name, bool from_shipped) const;
};

template <class T>
std::vector<std::string_view> names_of(const Named<T>& things) {
  std::vector<std::string_view> names;
  for (const auto& [name, thing] : things) names.push_back(name);
  return names;
}

// "unknown model: gpt4", with the nearest existing name as its hint.
Error unknown(std::string_view what, const syntax::Name& name, std::span<const std::string_view> candidates);

// Whether a CREATE would shadow a shipped layer or model.
bool shadows_shipped(const Catalog& catalog, const syntax::Statement& statement);

// Executes a CREATE or DROP. A model, or a layer with defaults for all sizes, is first bound at its
// default sizes, so that an invalid definition never enters the catalog. That trial uses `options`
// except for sizes and mode. On failure nothing changes.
Status define(Catalog& catalog, const std::shared_ptr<const ParsedText>& source,
              const syntax::Statement& statement, const BindOptions& options);

}  // namespace weft::language
