// weft/language/catalog.h -- the things that statements create and other statements name.
//
// Models and layers are kept as the text they were written in, parsed: sizes are only known at
// use, so a model is bound anew for every batch size someone asks about. A definition shares
// ownership of its text, so error messages can always quote it.
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

// A text and what it says. Script::text and every name in it point into `text`.
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

// A function is kept as its expression, which takes its place wherever it is called.
struct FunctionDefinition {
  std::shared_ptr<const ParsedText> source;
  const syntax::CreateFunction* statement = nullptr;
  std::string usage;  // "softplus(x)"
};

// Ordered by name, so that what SHOW prints does not depend on the order of creation.
template <class T>
using Named = std::map<std::string, T, std::less<>>;

struct Catalog {
  Named<cluster::Device> devices;
  Named<cluster::Cluster> clusters;
  Named<std::vector<std::string>> origins;  // of clusters made from logs: what was measured, what is assumed
  Named<FunctionDefinition> functions;
  Named<LayerDefinition> layers;
  Named<ModelDefinition> models;
  // Shipped ones that a CREATE of the same name shadows, until it is dropped.
  Named<LayerDefinition> shadowed_layers;
  Named<ModelDefinition> shadowed_models;

  // What a call in a layer or model means; nullptr: nothing. Shipped ones call shipped layers, shadowed or not.
  const LayerDefinition* find_layer(std::string_view name, bool from_shipped) const;
};

template <class T>
std::vector<std::string_view> names_of(const Named<T>& things) {
  std::vector<std::string_view> names;
  for (const auto& [name, thing] : things) names.push_back(name);
  return names;
}

// "unknown model: gpt4" with the nearest name there is as its hint.
Error unknown(std::string_view what, const syntax::Name& name, std::span<const std::string_view> candidates);

// Whether a CREATE would shadow a shipped layer or model.
bool shadows_shipped(const Catalog& catalog, const syntax::Statement& statement);

// Carries out a CREATE or DROP. A model is bound at its default sizes first, and so is a layer
// whose sizes all have defaults, so that a definition with a mistake never enters the catalog.
// `options` bound the trial; their sizes and mode do not count. On failure nothing has changed.
Status define(Catalog& catalog, const std::shared_ptr<const ParsedText>& source,
              const syntax::Statement& statement, const BindOptions& options);

}  // namespace weft::language
