// SHOW and DESCRIBE: what the catalog holds.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/base/letters.h"
#include "weft/base/nearest.h"
#include "weft/base/units.h"
#include "weft/explain/description.h"
#include "weft/explain/table.h"
#include "weft/language/functions.h"
#include "weft/language/print.h"
#include "weft/ops/operators.h"
#include "weft/rule/library.h"
#include "weft/session/state.h"

namespace weft::session {
namespace {

using Json = nlohmann::ordered_json;
using explain::Align;
using explain::Table;

// What stands in a table, and what a program reads in its place.
struct Cell {
  std::string text;
  Json json;

  Cell(std::string both) : text(both), json(std::move(both)) {}
  Cell(std::string_view both) : Cell(std::string(both)) {}
  Cell(std::string shown, double value) : text(std::move(shown)), json(value) {}
  static Cell count(std::int64_t value) {
    Cell cell(print_exact(value));
    cell.json = value;
    return cell;
  }
};

// A listing in both of its forms at once: column i of a row is the JSON field keys[i].
class Listing {
 public:
  Listing(std::vector<std::string> keys, std::vector<explain::Column> columns)
      : keys_(std::move(keys)), table_(std::move(columns)) {}

  void add(std::vector<Cell> cells) {
    Json row = Json::object();
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      row[keys_[i]] = std::move(cells[i].json);
      texts.push_back(std::move(cells[i].text));
    }
    rows_.push_back(std::move(row));
    table_.add(std::move(texts));
  }

  std::string print(Format format, std::string_view none) const {
    if (format == Format::json) return rows_.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    return table_.empty() ? std::string(none) + "\n" : table_.print();
  }

 private:
  std::vector<std::string> keys_;
  Table table_;
  Json rows_ = Json::array();
};

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

std::string rates(const cluster::Device& device) {
  std::string text;
  for (std::size_t p = 0; p < cluster::kPrecisions; ++p)
    if (device.flops_per_second[p] > 0)
      text +=
          fmt::format("{}{} {}", text.empty() ? "" : ", ", cluster::name(static_cast<cluster::Precision>(p)),
                      print(Quantity{device.flops_per_second[p], Dimension::flops_per_second}));
  return text;
}

std::string links(const cluster::Cluster& cluster) {
  std::string text;
  for (const cluster::Axis& axis : cluster.axes)
    if (!axis.link.name.empty())
      text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", axis.link.name,
                          print_rate(axis.link.bytes_per_second), print_seconds(axis.link.latency_seconds));
  return text;
}

std::string mesh(const cluster::Cluster& cluster) {
  std::string text;
  for (const cluster::Axis& axis : cluster.axes)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", axis.name, axis.size);
  return text;
}

std::string show_models(const Session::State& state, Format format) {
  Listing listing({"model", "inputs", "sizes"}, {{"model"}, {"inputs"}, {"sizes"}});
  for (const auto& [name, model] : state.catalog.models)
    listing.add({name, tensor_list(model.statement->body.inputs), size_list(model.statement->body.sizes)});
  return listing.print(format, "no models");
}

std::string show_layers(const Session::State& state, Format format) {
  Listing listing({"layer", "arguments", "sizes"}, {{"layer"}, {"arguments"}, {"sizes"}});
  for (const auto& [name, layer] : state.catalog.layers)
    listing.add({name, tensor_list(layer.statement->arguments), size_list(layer.statement->body.sizes)});
  return listing.print(format, "no layers");
}

std::string show_clusters(const Session::State& state, Format format) {
  Listing listing({"cluster", "devices", "device", "mesh", "links"},
                  {{"cluster"}, {"devices", Align::right}, {"device"}, {"mesh"}, {"links"}});
  for (const auto& [name, cluster] : state.catalog.clusters)
    listing.add({name, Cell::count(cluster.devices()), cluster.device.name, mesh(cluster), links(cluster)});
  return listing.print(format, "no clusters");
}

std::string show_devices(const Session::State& state, Format format) {
  Listing listing({"device", "memory", "bandwidth", "launch", "rates"}, {{"device"},
                                                                         {"memory", Align::right},
                                                                         {"bandwidth", Align::right},
                                                                         {"launch", Align::right},
                                                                         {"rates"}});
  for (const auto& [name, device] : state.catalog.devices)
    listing.add({name, Cell(print_bytes(device.memory_bytes), device.memory_bytes),
                 Cell(print_rate(device.memory_bytes_per_second), device.memory_bytes_per_second),
                 Cell(print_seconds(device.launch_seconds), device.launch_seconds), rates(device)});
  return listing.print(format, "no devices");
}

std::string show_settings(const Session::State& state, Format format) {
  Listing listing({"setting", "value", "meaning"}, {{"setting"}, {"value"}, {"meaning"}});
  for (const SettingSpec& spec : setting_specs())
    listing.add({std::string(spec.name), spec.show(state.settings), std::string(spec.summary)});
  return listing.print(format, "no settings");
}

std::string show_hints(const Session::State& state, Format format) {
  Listing listing({"hint"}, {{"hint"}});
  for (const KeptHint& hint : state.hints) listing.add({hint.text});
  return listing.print(format, "no hints");
}

std::string show_functions(const Session::State&, Format format) {
  Listing listing({"function", "meaning"}, {{"function"}, {"meaning"}});
  for (const language::FunctionSpec& spec : language::functions())
    listing.add({std::string(spec.usage), std::string(spec.summary)});
  return listing.print(format, "no functions");
}

std::string show_operators(const Session::State&, Format format) {
  Listing listing({"operator", "operands", "attributes"}, {{"operator"}, {"operands"}, {"attributes"}});
  for (const plan::Operator* op : ops::all().all()) {
    std::string attributes;
    for (const plan::AttributeSpec& spec : op->attributes())
      attributes += fmt::format("{}{}", attributes.empty() ? "" : ", ", spec.name);
    const std::string operands = op->fewest_inputs() == op->most_inputs()
                                     ? fmt::format("{}", op->fewest_inputs())
                                     : fmt::format("{} or more", op->fewest_inputs());
    listing.add({std::string(op->name()), operands, attributes});
  }
  return listing.print(format, "no operators");
}

std::string show_rules(const Session::State&, Format format) {
  Listing listing({"rule", "kind", "why"}, {{"rule"}, {"kind"}, {"why"}});
  for (const rule::Rule& rule : rule::shipped_rules())
    listing.add({rule.name, rule::name(rule.kind), rule.why});
  return listing.print(format, "no rules");
}

struct Shown {
  std::string_view word;
  std::string (*print)(const Session::State& state, Format format);
};
constexpr Shown kShown[] = {
    {"MODELS", show_models},       {"LAYERS", show_layers},       {"CLUSTERS", show_clusters},
    {"DEVICES", show_devices},     {"SETTINGS", show_settings},   {"HINTS", show_hints},
    {"FUNCTIONS", show_functions}, {"OPERATORS", show_operators}, {"RULES", show_rules}};

std::string describe_cluster(const cluster::Cluster& cluster, Format format) {
  if (format == Format::json) {
    Json axes = Json::array();
    for (const cluster::Axis& axis : cluster.axes)
      axes.push_back({{"axis", axis.name},
                      {"size", axis.size},
                      {"link", axis.link.name},
                      {"bytes_per_second", axis.link.bytes_per_second},
                      {"latency_seconds", axis.link.latency_seconds}});
    return Json{{"cluster", cluster.name},
                {"device", cluster.device.name},
                {"devices", cluster.devices()},
                {"mesh", axes}}
               .dump() +
           "\n";
  }
  std::string out = fmt::format("cluster {}: {} devices {}\n\n", cluster.name, print_exact(cluster.devices()),
                                cluster.device.name);
  Table table(
      {{"axis"}, {"size", Align::right}, {"link"}, {"bandwidth", Align::right}, {"latency", Align::right}});
  for (const cluster::Axis& axis : cluster.axes)
    table.add(axis.link.name.empty()
                  ? std::vector<std::string>{axis.name, print_exact(axis.size)}
                  : std::vector<std::string>{axis.name, print_exact(axis.size), axis.link.name,
                                             print_rate(axis.link.bytes_per_second),
                                             print_seconds(axis.link.latency_seconds)});
  return out + table.print();
}

std::string describe_device(const cluster::Device& device, Format format) {
  if (format == Format::json) {
    Json made = {{"device", device.name},
                 {"memory_bytes", device.memory_bytes},
                 {"memory_bytes_per_second", device.memory_bytes_per_second},
                 {"launch_seconds", device.launch_seconds}};
    made["flops_per_second"] = Json::object();
    for (std::size_t p = 0; p < cluster::kPrecisions; ++p)
      if (device.flops_per_second[p] > 0)
        made["flops_per_second"][std::string(cluster::name(static_cast<cluster::Precision>(p)))] =
            device.flops_per_second[p];
    return made.dump() + "\n";
  }
  return fmt::format("device {}\nmemory     {}\nbandwidth  {}\nlaunch     {}\nrates      {}\n", device.name,
                     print_bytes(device.memory_bytes), print_rate(device.memory_bytes_per_second),
                     print_seconds(device.launch_seconds), rates(device));
}

}  // namespace

Answer run_show(const Session::State& state, const Context& context, const language::syntax::Show& show) {
  const std::string wanted = upper(show.what.text);
  std::vector<std::string_view> words;
  for (const Shown& shown : kShown) {
    if (shown.word == wanted) return shown.print(state, context.format);
    words.push_back(shown.word);
  }
  std::string hint = did_you_mean(wanted, words);
  return user_error(fmt::format("cannot show '{}'", show.what.text),
                    hint.empty() ? fmt::format("SHOW takes {}", fmt::join(words, ", ")) : std::move(hint),
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
    language::BindOptions options{.mode = language::Mode::infer,
                                  .sizes = overrides,
                                  .precision = settings.precision,
                                  .plan_limit = settings.plan_limit,
                                  .interrupted = context.interrupted};
    WEFT_TRY(bound, language::bind(catalog, describe.name, options));
    return context.format == Format::json ? explain::print_json(bound, name)
                                          : explain::print_text(bound, name);
  }
  if (!describe.settings.empty())
    return user_error(fmt::format("only a model is described WITH sizes, and there is no model {}", name),
                      "take WITH away", describe.name.span);
  if (const auto layer = catalog.layers.find(name); layer != catalog.layers.end()) {
    const std::string text = language::print(*layer->second.statement) + ";\n";
    return context.format == Format::json ? Json{{"layer", name}, {"definition", text}}.dump(
                                                -1, ' ', false, Json::error_handler_t::replace) +
                                                "\n"
                                          : text;
  }
  if (const auto found = catalog.clusters.find(name); found != catalog.clusters.end())
    return describe_cluster(found->second, context.format);
  if (const auto found = catalog.devices.find(name); found != catalog.devices.end())
    return describe_device(found->second, context.format);
  std::vector<std::string_view> names = language::names_of(catalog.models);
  for (const auto& more : {language::names_of(catalog.layers), language::names_of(catalog.clusters),
                           language::names_of(catalog.devices)})
    names.insert(names.end(), more.begin(), more.end());
  std::string hint = did_you_mean(name, names);
  return user_error(fmt::format("no model, layer, cluster or device is named {}", name),
                    hint.empty() ? "SHOW MODELS lists the models" : std::move(hint), describe.name.span);
}

}  // namespace weft::session
