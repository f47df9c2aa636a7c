// SHOW and DESCRIBE: the contents of the catalog.
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/explain/description.h"
#include "weft/app/explain/hardware.h"
#include "weft/app/explain/listing.h"
#include "weft/app/session/show_statistics.h"
#include "weft/app/session/state.h"
#include "weft/base/letters.h"
#include "weft/base/nearest.h"
#include "weft/base/units.h"
#include "weft/language/functions.h"
#include "weft/language/print.h"
#include "weft/plan/ops/operators.h"
#include "weft/planner/statement/prepare.h"
#include "weft/rules/rule/library.h"

namespace weft::session {
namespace {

using Json = nlohmann::ordered_json;
using explain::Align;
using explain::Cell;
using explain::Fit;
using explain::Listing;

std::string size_list(std::span<const language::syntax::Size> sizes) {
  std::string text;
  for (const language::syntax::Size& size : sizes) {
    if (!text.empty()) text += ", ";
    text += size.name.text;
    if (size.value != nullptr) text += fmt::format(" = {}", language::print(*size.value));
  }
  return text;
}

std::string tensor_list(std::span<const language::syntax::Tensor> tensors) {
  std::string text;
  for (const language::syntax::Tensor& tensor : tensors) {
    if (!text.empty()) text += ", ";
    text += tensor.name.text;
    if (!tensor.indices.empty()) {
      text += '[';
      for (std::size_t i = 0; i < tensor.indices.size(); ++i)
        text += fmt::format("{}{}", i == 0 ? "" : ", ", tensor.indices[i].text);
      text += ']';
    }
    if (tensor.dtype.given()) text += fmt::format(" OF {}", tensor.dtype.text);
  }
  return text;
}

Listing show_models(const Session::State& state) {
  Listing listing({"model", "inputs", "sizes"},
                  {{"model"}, {"inputs", Align::left, Fit::wrap}, {"sizes", Align::left, Fit::wrap}});
  for (const auto& [name, model] : state.catalog.models)
    listing.add({name, tensor_list(model.statement->body.inputs), size_list(model.statement->body.sizes)});
  return listing;
}

Listing show_layers(const Session::State& state) {
  Listing listing({"layer", "arguments", "sizes"},
                  {{"layer"}, {"arguments", Align::left, Fit::wrap}, {"sizes", Align::left, Fit::wrap}});
  for (const auto& [name, layer] : state.catalog.layers)
    listing.add({name, tensor_list(layer.statement->arguments), size_list(layer.statement->body.sizes)});
  return listing;
}

Listing show_clusters(const Session::State& state) {
  Listing listing({"cluster", "devices", "device", "mesh", "links"}, {{"cluster"},
                                                                      {"devices", Align::right},
                                                                      {"device"},
                                                                      {"mesh", Align::left, Fit::wrap},
                                                                      {"links", Align::left, Fit::wrap}});
  for (const auto& [name, cluster] : state.catalog.clusters)
    listing.add({name, Cell::count(cluster.devices()), cluster::print_devices(cluster),
                 explain::print_mesh(cluster), explain::print_links(cluster)});
  return listing;
}

Listing show_devices(const Session::State& state) {
  Listing listing({"device", "memory", "bandwidth", "launch", "rates"}, {{"device"},
                                                                         {"memory", Align::right},
                                                                         {"bandwidth", Align::right},
                                                                         {"launch", Align::right},
                                                                         {"rates", Align::left, Fit::wrap}});
  for (const auto& [name, device] : state.catalog.devices)
    listing.add({name, Cell(print_bytes(device.memory_bytes), device.memory_bytes),
                 Cell(print_rate(device.memory_bytes_per_second), device.memory_bytes_per_second),
                 Cell(print_seconds(device.launch_seconds), device.launch_seconds),
                 explain::print_rates(device)});
  return listing;
}

Listing show_stacks(const Session::State& state) {
  Listing listing({"stack", "version", "constants"},
                  {{"stack"}, {"version"}, {"constants", Align::left, Fit::wrap}});
  const cluster::Stack usual;
  for (const auto& [name, stack] : state.catalog.stacks) {
    std::string constants;
    for (const cluster::StackField& field : cluster::stack_fields()) {
      const double value = stack.*field.field;
      if (value == usual.*field.field) continue;
      const std::string text = field.dimension == Dimension::seconds ? print_seconds(value)
                               : field.dimension == Dimension::bytes ? print_bytes(value)
                                                                     : fmt::format("{}", value);
      constants += fmt::format("{}{} {}", constants.empty() ? "" : ", ", field.name, text);
    }
    listing.add({name, stack.version, constants});
  }
  return listing;
}

Listing show_settings(const Session::State& state) {
  Listing listing({"setting", "value", "meaning"},
                  {{"setting"}, {"value", Align::left, Fit::wrap}, {"meaning", Align::left, Fit::wrap}});
  for (const SettingSpec& spec : setting_specs())
    listing.add({std::string(spec.name), spec.show(state.settings), std::string(spec.summary)});
  return listing;
}

Listing show_hints(const Session::State& state) {
  Listing listing({"hint"}, {{"hint", Align::left, Fit::wrap}});
  for (const KeptHint& hint : state.hints) listing.add({hint.text});
  return listing;
}

Listing show_functions(const Session::State& state) {
  Listing listing({"function", "meaning"},
                  {{"function", Align::left, Fit::wrap}, {"meaning", Align::left, Fit::wrap}});
  std::vector<std::pair<std::string_view, std::string>>
      rows;  // usage and meaning of built-in and user-defined functions
  for (const language::FunctionSpec& spec : language::functions())
    rows.emplace_back(spec.usage, spec.summary);
  for (const auto& [name, own] : state.catalog.functions)
    rows.emplace_back(own.usage, fmt::format("AS {}", language::print(*own.statement->body)));
  std::ranges::stable_sort(rows, {},
                           [](const auto& row) { return row.first.substr(0, row.first.find('(')); });
  for (const auto& [usage, meaning] : rows) listing.add({std::string(usage), meaning});
  return listing;
}

Listing show_operators(const Session::State&) {
  Listing listing({"operator", "operands", "attributes"},
                  {{"operator"}, {"operands"}, {"attributes", Align::left, Fit::wrap}});
  for (const plan::Operator* op : ops::all().all()) {
    std::string attributes;
    for (const plan::AttributeSpec& spec : op->attributes())
      attributes += fmt::format("{}{}", attributes.empty() ? "" : ", ", spec.name);
    const std::string operands = op->min_inputs() == op->max_inputs()
                                     ? fmt::format("{}", op->min_inputs())
                                     : fmt::format("{} or more", op->min_inputs());
    listing.add({std::string(op->name()), operands, attributes});
  }
  return listing;
}

Listing show_rules(const Session::State&) {
  Listing listing({"rule", "kind", "why"},
                  {{"rule", Align::left, Fit::wrap}, {"kind"}, {"why", Align::left, Fit::wrap}});
  for (const rule::Rule& rule : rule::shipped_rules())
    listing.add({rule.name, rule::name(rule.kind), rule.why});
  return listing;
}

std::span<const std::string> origins_of(const language::Catalog& catalog, std::string_view cluster) {
  const auto found = catalog.origins.find(cluster);
  return found == catalog.origins.end() ? std::span<const std::string>() : found->second;
}

struct Shown {
  std::string_view word;
  Listing (*list)(const Session::State& state);
};
constexpr Shown kShown[] = {
    {"MODELS", show_models},   {"LAYERS", show_layers},        {"CLUSTERS", show_clusters},
    {"DEVICES", show_devices}, {"STACKS", show_stacks},        {"SETTINGS", show_settings},
    {"HINTS", show_hints},     {"FUNCTIONS", show_functions},  {"OPERATORS", show_operators},
    {"RULES", show_rules},     {"STATISTICS", show_statistics}};

}  // namespace

Answer run_show(const Session::State& state, const Context& context, const language::syntax::Show& show) {
  const std::string wanted = upper(show.what.text);
  std::vector<std::string_view> words;
  for (const Shown& shown : kShown) {
    if (shown.word == wanted) {
      const Listing listing = shown.list(state);
      return context.format == Format::json ? listing.print_json()
                                            : listing.print("no " + lower(wanted), context.width);
    }
    words.push_back(shown.word);
  }
  std::string hint = did_you_mean(wanted, words);
  return user_error(fmt::format("cannot show '{}'", show.what.text),
                    hint.empty() ? fmt::format("SHOW supports {}", fmt::join(words, ", ")) : std::move(hint),
                    show.what.span);
}

Answer run_describe(const Session::State& state, const Context& context,
                    const language::syntax::Describe& describe) {
  const language::Catalog& catalog = state.catalog;
  const std::string name(describe.name.text);
  if (catalog.models.contains(name)) {
    Settings settings = state.settings;
    WEFT_TRY(sizes, sizes_of(catalog, describe.name));
    WEFT_TRY(overrides, apply_list(settings, describe.settings, sizes, name));
    note_old_names(state, describe.settings, sizes);
    language::BindOptions options{.mode = language::Mode::infer,
                                  .sizes = overrides,
                                  .precision = settings.precision,
                                  .plan_limit = settings.plan_limit,
                                  .interrupted = context.interrupted};
    WEFT_TRY(bound, language::bind(catalog, describe.name, options));
    return context.format == Format::json ? explain::print_json(bound, name)
                                          : explain::print_text(bound, name, context.width);
  }
  if (!describe.settings.empty())
    return user_error(fmt::format("WITH sizes apply only to models; there is no model {}", name),
                      "remove WITH", describe.name.span);
  const auto definition = [&](const char* what, const language::syntax::Statement& statement) -> Answer {
    const std::string text = language::print(statement) + ";\n";
    if (context.format != Format::json) return text;
    return Json{{what, name}, {"definition", text}}.dump(-1, ' ', false, Json::error_handler_t::replace) +
           "\n";
  };
  if (const auto layer = catalog.layers.find(name); layer != catalog.layers.end())
    return definition("layer", *layer->second.statement);
  if (const auto own = catalog.functions.find(name); own != catalog.functions.end())
    return definition("function", *own->second.statement);
  if (const auto found = catalog.clusters.find(name); found != catalog.clusters.end())
    return context.format == Format::json
               ? explain::print_json(found->second, origins_of(catalog, name))
               : explain::print_text(found->second, context.width, origins_of(catalog, name));
  if (const auto found = catalog.devices.find(name); found != catalog.devices.end())
    return context.format == Format::json ? explain::print_json(found->second)
                                          : explain::print_text(found->second, context.width);
  std::vector<std::string_view> names = language::names_of(catalog.models);
  for (const auto& more : {language::names_of(catalog.layers), language::names_of(catalog.functions),
                           language::names_of(catalog.clusters), language::names_of(catalog.devices)})
    names.insert(names.end(), more.begin(), more.end());
  std::string hint = did_you_mean(name, names);
  return user_error(fmt::format("no model, layer, function, cluster or device is named {}", name),
                    hint.empty() ? "SHOW MODELS lists the models" : std::move(hint), describe.name.span);
}

}  // namespace weft::session
