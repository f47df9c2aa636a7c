#include "weft/app/explain/description.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/explain/table.h"
#include "weft/app/explain/whole.h"
#include "weft/base/units.h"
#include "weft/plan/ops/operators.h"

namespace weft::explain {
namespace {

using Json = nlohmann::ordered_json;
using plan::NodeId;

struct TensorLine {
  std::string name;  // iterations replaced by *: gpt_block.*.wq
  std::string type;
  std::int64_t elements = 0;
  std::int64_t count = 0;
};

// gpt_block.11.wq -> gpt_block.*.wq
std::string without_iterations(std::string_view path) {
  std::string out;
  std::size_t at = 0;
  while (at <= path.size()) {
    const std::size_t dot = std::min(path.find('.', at), path.size());
    const std::string_view part = path.substr(at, dot - at);
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
    if (at != 0) out += '.';
    out += number ? std::string_view("*") : part;
    at = dot + 1;
  }
  return out;
}

std::vector<TensorLine> tensors_of(const plan::Graph& graph, const plan::Operator& kind) {
  std::vector<TensorLine> lines;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::NodeView node = graph.view(NodeId(n));
    if (&node.op() != &kind) continue;
    TensorLine line{without_iterations(node.word(0)), print(node.result_type(0), graph.symbols()),
                    node.result_type(0).elements(), 1};
    auto same = lines.begin();
    while (same != lines.end() && (same->name != line.name || same->type != line.type)) ++same;
    if (same == lines.end()) {
      lines.push_back(std::move(line));
    } else {
      same->elements += line.elements;
      ++same->count;
    }
  }
  return lines;
}

void add_rows(Table& table, std::string_view kind, const std::vector<TensorLine>& lines) {
  for (const TensorLine& line : lines)
    table.add({std::string(kind), line.name, line.type, line.count > 1 ? fmt::format("× {}", line.count) : "",
               print_exact(line.elements)});
}

}  // namespace

Description describe(const plan::Graph& graph) {
  Description made;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::NodeView node = graph.view(NodeId(n));
    if (&node.op() == &ops::parameter()) {
      made.parameters += node.result_type(0).elements();
      made.parameter_bytes += static_cast<double>(node.result_type(0).bytes());
      ++made.parameter_tensors;
    } else if (&node.op() == &ops::state()) {
      made.states += node.result_type(0).elements();
    }
    const plan::Work work = node.op().work(node);
    made.multiply_adds += work.multiply_adds;
    made.other_flops += work.flops - 2 * work.multiply_adds;
  }
  return made;
}

std::string print_text(const language::BoundModel& model, const std::string& name, std::size_t width) {
  const plan::Graph& graph = model.graph;
  const Description description = describe(graph);
  std::string sizes;
  for (const language::BoundSize& size : model.sizes)
    sizes += fmt::format("{}{} = {}", sizes.empty() ? "" : ", ", size.name, size.size);
  std::string out = fmt::format("model {} ({})\n", name, sizes);
  out += fmt::format("parameters     {} in {} tensors, {}\n", print_exact(description.parameters),
                     description.parameter_tensors, print_bytes(description.parameter_bytes));
  if (description.states > 0) out += fmt::format("states         {}\n", print_exact(description.states));
  out += fmt::format("multiply-adds  {} in one forward pass: {}\n", print_whole(description.multiply_adds),
                     print_flops(description.forward_flops()));
  out += fmt::format("other          {}\n", print_flops(description.other_flops));
  Table table({{"kind"},
               {"name", Align::left, Fit::wrap},
               {"type", Align::left, Fit::wrap},
               {"", Align::left},
               {"elements", Align::right}});
  add_rows(table, "input", tensors_of(graph, ops::input()));
  add_rows(table, "parameter", tensors_of(graph, ops::parameter()));
  add_rows(table, "state", tensors_of(graph, ops::state()));
  for (const plan::Output& output : graph.outputs())
    table.add({"output", std::string(graph.text(output.name)),
               print(graph.type(output.value), graph.symbols()), "",
               print_exact(graph.type(output.value).elements())});
  return wrap(out, width) + "\n" + table.print(width);
}

std::string print_json(const language::BoundModel& model, const std::string& name) {
  const plan::Graph& graph = model.graph;
  const Description description = describe(graph);
  Json json = {{"model", name},
               {"parameters", description.parameters},
               {"parameter_tensors", description.parameter_tensors},
               {"parameter_bytes", whole(description.parameter_bytes)},
               {"states", description.states},
               {"multiply_adds", whole(description.multiply_adds)},
               {"forward_flops", whole(description.forward_flops())},
               {"other_flops", whole(description.other_flops)}};
  json["indices"] = Json::object();
  for (const language::BoundSize& size : model.sizes) json["indices"][size.name] = size.size;
  const auto list = [&](const plan::Operator& kind) {
    Json tensors = Json::array();
    for (std::size_t n = 0; n < graph.node_count(); ++n) {
      const plan::NodeView node = graph.view(NodeId(n));
      if (&node.op() == &kind)
        tensors.push_back({{"name", node.word(0)},
                           {"type", print(node.result_type(0), graph.symbols())},
                           {"elements", node.result_type(0).elements()}});
    }
    return tensors;
  };
  json["inputs"] = list(ops::input());
  json["parameter_list"] = list(ops::parameter());
  json["state_list"] = list(ops::state());
  Json outputs = Json::array();
  for (const plan::Output& output : graph.outputs())
    outputs.push_back(
        {{"name", graph.text(output.name)}, {"type", print(graph.type(output.value), graph.symbols())}});
  json["outputs"] = std::move(outputs);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace weft::explain
