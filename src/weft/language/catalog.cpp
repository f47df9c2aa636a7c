#include "weft/language/catalog.h"

#include <algorithm>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "weft/base/letters.h"
#include "weft/base/nearest.h"
#include "weft/language/bind.h"
#include "weft/language/define_cluster.h"
#include "weft/language/parser.h"
#include "weft/language/user_function.h"

namespace weft::language {

Result<std::shared_ptr<const ParsedText>> parse_and_keep(std::string_view text) {
  auto kept = std::make_shared<ParsedText>();
  kept->text = std::make_shared<const std::string>(text);
  WEFT_TRY(script, parse(*kept->text));
  kept->script = std::move(script);
  return std::shared_ptr<const ParsedText>(std::move(kept));
}

Error unknown(std::string_view what, const syntax::Name& name, std::span<const std::string_view> candidates) {
  std::string hint = did_you_mean(name.text, candidates);
  constexpr std::size_t kFew = 8;
  if (hint.empty() && candidates.empty()) hint = fmt::format("no {} is defined", what);
  if (hint.empty() && candidates.size() <= kFew)
    hint = fmt::format("there is {}", fmt::join(candidates, ", "));
  if (hint.empty() && what != "tensor") hint = fmt::format("SHOW {}S lists them", upper(what));
  return user_error(fmt::format("unknown {}: {}", what, name.text), std::move(hint), name.span);
}

namespace {

// Calls `see` for every layer call in a query, in source order.
void for_each_call(const syntax::Query& query, const std::function<void(const syntax::Source&)>& see) {
  for (const syntax::Binding& binding : query.bindings) for_each_call(*binding.query, see);
  for (const syntax::Source& source : query.select.sources) {
    if (source.kind == syntax::SourceKind::call) see(source);
    if (source.kind == syntax::SourceKind::query) for_each_call(*source.query, see);
  }
}

// Whether CREATE without OR REPLACE may shadow this name: it is a shipped object, not shadowed yet.
template <class T>
bool is_shadowed_by(const Named<T>& things, std::string_view name, bool replace) {
  const auto found = things.find(name);
  return !replace && found != things.end() && found->second.shipped;
}

// Fails if the layers that `query` calls, directly or indirectly, include `name` itself or an
// unknown layer. This check is possible even for a layer that cannot be tried because it has open
// sizes.
Status check_calls(const Catalog& catalog, std::string_view name, bool shadows, const syntax::Query& query) {
  std::set<const LayerDefinition*> seen;
  std::vector<std::string_view> path = {name};
  const std::function<bool(const LayerDefinition&)> reaches = [&](const LayerDefinition& from) {
    bool found = false;
    for_each_call(*from.statement->body.query, [&](const syntax::Source& call) {
      if (found) return;
      path.push_back(call.name.text);
      if (call.name.text == name && !(shadows && from.shipped)) {
        found = true;
        return;
      }
      const LayerDefinition* layer = catalog.find_layer(call.name.text, from.shipped);
      if (layer != nullptr && seen.insert(layer).second && reaches(*layer)) {
        found = true;
        return;
      }
      path.pop_back();
    });
    return found;
  };
  Status status;
  for_each_call(query, [&](const syntax::Source& call) {
    if (!status.ok()) return;
    const LayerDefinition* layer = catalog.find_layer(call.name.text, /*from_shipped=*/false);
    if (call.name.text != name && layer == nullptr) {
      status = unknown("layer", call.name, names_of(catalog.layers));
      return;
    }
    path = {name, call.name.text};
    seen.clear();
    if (call.name.text == name || reaches(*layer))
      status = user_error(fmt::format("layer {} calls itself: {}", name, fmt::join(path, " -> ")),
                          "use REPEAT to stack layers", call.span);
  });
  return status;
}

template <class T>
Status check_free(const Named<T>& things, std::string_view what, const syntax::Name& name, bool free) {
  if (free || !things.contains(name.text)) return {};
  return user_error(fmt::format("{} {} exists already", what, name.text),
                    fmt::format("write CREATE OR REPLACE, or DROP {} {} first", upper(what), name.text),
                    name.span);
}

template <class T>
Status drop(Named<T>& things, std::string_view what, const syntax::Name& name) {
  const auto found = things.find(name.text);
  if (found == things.end()) return unknown(what, name, names_of(things));
  things.erase(found);
  return {};
}

// Adds a user's definition, and saves the shipped one that it shadows.
template <class T>
void keep(Named<T>& things, Named<T>& shadowed, std::string_view name, bool shadows, T definition) {
  if (shadows) shadowed.insert_or_assign(std::string(name), things.find(name)->second);
  things.insert_or_assign(std::string(name), std::move(definition));
}

template <class T>
Status drop(Named<T>& things, Named<T>& shadowed, std::string_view what, const syntax::Name& name) {
  WEFT_TRY_STATUS(drop(things, what, name));
  if (auto shipped = shadowed.extract(std::string(name.text))) things.insert(std::move(shipped));
  return {};
}

// UPDATE is only bound in train mode.
BindOptions in_training(BindOptions options) {
  options.mode = Mode::train;
  return options;
}

Status define_layer(Catalog& catalog, const std::shared_ptr<const ParsedText>& source,
                    const syntax::CreateLayer& layer, const BindOptions& options) {
  const bool shadows = is_shadowed_by(catalog.layers, layer.name.text, layer.replace);
  WEFT_TRY_STATUS(check_free(catalog.layers, "layer", layer.name, layer.replace || shadows));
  WEFT_TRY_STATUS(check_calls(catalog, layer.name.text, shadows, *layer.body.query));
  for (std::size_t i = 0; i < layer.arguments.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (layer.arguments[i].name.text == layer.arguments[j].name.text)
        return user_error(
            fmt::format("{} is declared twice in {}", layer.arguments[i].name.text, layer.name.text),
            "give one of them another name", layer.arguments[i].name.span);
  for (const syntax::Binding& update : layer.body.updates)
    WEFT_TRY_STATUS(check_calls(catalog, layer.name.text, shadows, *update.query));
  LayerDefinition definition{source, &layer};
  WEFT_TRY_STATUS(try_layer(catalog, definition, options));
  if (!layer.body.updates.empty()) WEFT_TRY_STATUS(try_layer(catalog, definition, in_training(options)));
  keep(catalog.layers, catalog.shadowed_layers, layer.name.text, shadows, std::move(definition));
  return {};
}

Status define_model(Catalog& catalog, const std::shared_ptr<const ParsedText>& source,
                    const syntax::CreateModel& model, const BindOptions& options) {
  const bool shadows = is_shadowed_by(catalog.models, model.name.text, model.replace);
  WEFT_TRY_STATUS(check_free(catalog.models, "model", model.name, model.replace || shadows));
  ModelDefinition definition{source, &model};
  WEFT_TRY(bound, bind(catalog, definition, options));
  if (!model.body.updates.empty()) {
    WEFT_TRY(learning, bind(catalog, definition, in_training(options)));
  }
  keep(catalog.models, catalog.shadowed_models, model.name.text, shadows, std::move(definition));
  return {};
}

}  // namespace

const LayerDefinition* Catalog::find_layer(std::string_view name, bool from_shipped) const {
  if (from_shipped)
    if (const auto found = shadowed_layers.find(name); found != shadowed_layers.end()) return &found->second;
  const auto found = layers.find(name);
  return found == layers.end() ? nullptr : &found->second;
}

bool shadows_shipped(const Catalog& catalog, const syntax::Statement& statement) {
  if (statement.kind == syntax::StatementKind::create_layer) {
    const auto& layer = statement.as<syntax::CreateLayer>();
    return is_shadowed_by(catalog.layers, layer.name.text, layer.replace);
  }
  if (statement.kind != syntax::StatementKind::create_model) return false;
  const auto& model = statement.as<syntax::CreateModel>();
  return is_shadowed_by(catalog.models, model.name.text, model.replace);
}

Status define(Catalog& catalog, const std::shared_ptr<const ParsedText>& source,
              const syntax::Statement& statement, const BindOptions& options) {
  switch (statement.kind) {
    case syntax::StatementKind::create_function: {
      const auto& function = statement.as<syntax::CreateFunction>();
      WEFT_TRY_STATUS(check_free(catalog.functions, "function", function.name, function.replace));
      WEFT_TRY_STATUS(check_function(catalog, function));
      catalog.functions.insert_or_assign(std::string(function.name.text),
                                         FunctionDefinition{source, &function, usage_of(function)});
      return {};
    }
    case syntax::StatementKind::create_layer:
      return define_layer(catalog, source, statement.as<syntax::CreateLayer>(), options);
    case syntax::StatementKind::create_model:
      return define_model(catalog, source, statement.as<syntax::CreateModel>(), options);
    case syntax::StatementKind::create_device: {
      const auto& device = statement.as<syntax::CreateDevice>();
      WEFT_TRY_STATUS(check_free(catalog.devices, "device", device.name, device.replace));
      WEFT_TRY(made, make_device(device));
      catalog.devices.insert_or_assign(made.name, made);
      return {};
    }
    case syntax::StatementKind::create_stack: {
      const auto& stack = statement.as<syntax::CreateStack>();
      WEFT_TRY_STATUS(check_free(catalog.stacks, "stack", stack.name, stack.replace));
      WEFT_TRY(made, make_stack(stack));
      catalog.stacks.insert_or_assign(made.name, made);
      return {};
    }
    case syntax::StatementKind::create_cluster: {
      const auto& cluster = statement.as<syntax::CreateCluster>();
      WEFT_TRY_STATUS(check_free(catalog.clusters, "cluster", cluster.name, cluster.replace));
      WEFT_TRY(made, make_cluster(catalog, cluster));
      catalog.origins.erase(made.name);
      catalog.clusters.insert_or_assign(made.name, made);
      return {};
    }
    case syntax::StatementKind::drop: {
      const auto& dropped = statement.as<syntax::Drop>();
      switch (dropped.object) {
        case syntax::ObjectKind::device: return drop(catalog.devices, "device", dropped.name);
        case syntax::ObjectKind::cluster:
          WEFT_TRY_STATUS(drop(catalog.clusters, "cluster", dropped.name));
          catalog.origins.erase(std::string(dropped.name.text));
          return {};
        case syntax::ObjectKind::stack: return drop(catalog.stacks, "stack", dropped.name);
        case syntax::ObjectKind::function: return drop(catalog.functions, "function", dropped.name);
        case syntax::ObjectKind::layer:
          return drop(catalog.layers, catalog.shadowed_layers, "layer", dropped.name);
        case syntax::ObjectKind::model:
          return drop(catalog.models, catalog.shadowed_models, "model", dropped.name);
      }
      return {};
    }
    default: WEFT_CHECK(false, "define() takes CREATE and DROP");
  }
  return {};
}

}  // namespace weft::language
