// run [seed=N] [show=NAME]: evaluates a plan on small generated inputs with the operators'
// reference semantics, in f64. Real sources are multiples of 0.25 in [-1, 1], integers are 0, 1 or
// 2, booleans 0 or 1. The same seed and name give the same numbers. Prints all outputs, or the one
// named.

#include <charconv>
#include <map>

#include <fmt/format.h>

#include "commands.h"
#include "weft/base/hash.h"
#include "weft/base/random.h"
#include "weft/language/complaint.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/interpret.h"
#include "weft/plan/ops/operators.h"

namespace weft::golden {
namespace {

using Tensor = ops::Tensor<double>;

constexpr std::int64_t kMostElements = 1 << 20;  // golden files must stay readable

double draw(Random& random, plan::DType dtype) {
  switch (dtype) {
    case plan::DType::boolean: return static_cast<double>(random.below(2));
    case plan::DType::i32:
    case plan::DType::i64: return static_cast<double>(random.below(3));
    default: return static_cast<double>(random.between(-4, 4)) / 4;
  }
}

Tensor generate(std::string_view name, const plan::Type& type, std::uint64_t seed) {
  Tensor tensor;
  for (const plan::Dim& dim : type.dims) tensor.sizes.push_back(dim.size);
  tensor.data.resize(static_cast<std::size_t>(type.elements()));
  // Seeded by the source's name, so that adding a source does not change the others' numbers.
  Random random(seed, Hasher().text(name).digest().low);
  for (double& element : tensor.data) element = draw(random, type.dtype);
  return tensor;
}

std::map<std::string, Tensor, std::less<>> sources_of(const plan::Graph& graph, std::uint64_t seed) {
  std::map<std::string, Tensor, std::less<>> sources;
  for (std::size_t i = 0; i < graph.node_count(); ++i) {
    const plan::NodeView node = graph.view(plan::NodeId(i));
    const std::string_view op = node.op().name();
    if (op != "input" && op != "parameter" && op != "state") continue;
    if (node.result_type(0).elements() > kMostElements)
      continue;  // interpret() then reports the missing source
    sources.emplace(node.word(0), generate(node.word(0), node.result_type(0), seed));
  }
  return sources;
}

// Prints one line per row of the last index.
std::string print(std::string_view name, const std::string& type, const Tensor& tensor) {
  std::string text = fmt::format("{}: {}\n", name, type);
  const std::size_t row = tensor.sizes.empty() ? 1 : static_cast<std::size_t>(tensor.sizes.back());
  for (std::size_t i = 0; i < tensor.data.size(); ++i) {
    const double shown = tensor.data[i] == 0 ? 0.0 : tensor.data[i];  // never print -0
    text += fmt::format("{}{:.6g}", i % row == 0 ? "  " : " ", shown);
    if (i % row == row - 1) text += '\n';
  }
  return text;
}

}  // namespace

std::string run_command(const Case& test) {
  const auto graph = plan::read(test.input, ops::all());
  if (!graph.ok()) return language::complain(graph.error(), test.input);
  std::uint64_t seed = 0;
  const std::string seed_text = test.flag("seed", "0"), show = test.flag("show");
  std::from_chars(seed_text.data(), seed_text.data() + seed_text.size(), seed);
  const auto sources = sources_of(*graph, seed);
  const auto find = [&](std::string_view name) -> const Tensor* {
    const auto found = sources.find(name);
    return found == sources.end() ? nullptr : &found->second;
  };
  const auto values = ops::interpret<double>(*graph, find, {}, kMostElements);
  if (!values.ok()) return language::complain(values.error(), test.input);
  std::string text;
  for (std::size_t i = 0; i < values->size(); ++i) {
    const plan::Output& output = graph->outputs()[i];
    const std::string_view name = graph->text(output.name);
    if (!show.empty() && show != name) continue;
    text += print(name, plan::print(graph->type(output.value), graph->symbols()), (*values)[i]);
  }
  return text.empty() ? fmt::format("error: no output named: {}", show) : text;
}

}  // namespace weft::golden
