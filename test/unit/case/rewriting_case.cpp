#include "rewriting_case.h"

#include <cmath>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "weft/base/hash.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/build.h"
#include "weft/plan/ops/interpret.h"
#include "weft/plan/ops/operators.h"

namespace weft::rule {

plan::Graph plan_of(std::string_view text) {
  Result<plan::Graph> graph = plan::read(text, ops::all());
  if (!graph.ok()) ADD_FAILURE() << graph.error().message << "\n" << text;
  return std::move(graph).value();
}

std::vector<Rule> rules_of(std::string_view text) {
  Result<std::vector<Rule>> rules = parse_rules(text, "test.rules", ops::all());
  if (!rules.ok()) ADD_FAILURE() << rules.error().message << "\n" << text;
  return std::move(rules).value();
}

const std::vector<Rule>& some_rules() {
  static const std::vector<Rule> rules = rules_of(R"(
rule relu_twice normalize
  why   the second changes nothing
  given x[I]
  left  y = relu(relu(x))
  right y = relu(x)

rule cancel_negations normalize
  why   the second takes the first back
  given x[I]
  left  y = neg(neg(x))
  right y = x

rule reassociate explore
  why   sums may be taken in any order
  given x[I], y[I], z[I]
  left  s = add(add(x, y), z)
  right s = add(x, add(y, z))

rule factor_out explore
  why   one product instead of two
  given x[I], y[I], z[I]
  left  s = add(mul(x, z), mul(y, z))
  right s = mul(add(x, y), z)

rule multiply_out explore
  why   the other way
  given x[I], y[I], z[I]
  left  s = mul(add(x, y), z)
  right s = add(mul(x, z), mul(y, z))

rule transpose_later explore
  why   pointwise work does not mind the order
  any   unary f
  given x[I]
  left  y = f(transpose(x, to=[I]))
  right y = transpose(f(x), to=[I])

rule merge_products explore
  why   one wide product instead of two narrow ones
  given x[B, K], v[K, n], w[K, m]
  left  p = contract(x, v, to=[B, n])
        q = contract(x, w, to=[B, m])
  right c = contract(x, concat(v, rename(w, from=[m], to=[n]), along=n), to=[B, n])
        p = slice(c, along=n, begin=0, end=size(v, n))
        q = rename(slice(c, along=n, begin=size(v, n), end=size(v, n) + size(w, m)), from=[n], to=[m])
  when  size(v, n) + size(w, m) <= 12

rule relu_of_negation explore
  why   relu(-x) = relu(x) - x
  given x[I]
  left  p = relu(x)
        q = relu(neg(x))
  right p = relu(x)
        q = sub(relu(x), x)

rule slice_of_slice explore
  why   one slice does
  given x[I, n]
  left  y = slice(slice(x, along=n, begin=a, end=b), along=n, begin=c, end=d)
  right y = slice(x, along=n, begin=a + c, end=a + d)
)");
  return rules;
}

plan::Graph random_plan(Random& random, std::size_t nodes) {
  plan::Graph graph;
  const std::vector<Symbol> names = {graph.symbol("a"), graph.symbol("b"), graph.symbol("c")};
  std::vector<plan::ValueId> values;
  const auto input = [&](std::size_t first, std::size_t second) {
    const std::vector<plan::Dim> dims = {{names[first], 2}, {names[second], 3}};
    const plan::TypeId type = graph.intern_type(plan::DType::f32, dims).value();
    values.push_back(ops::add_input(graph, fmt::format("x{}", values.size()), type).value());
  };
  input(0, 1);
  input(0, 1);
  input(2, 1);
  input(2, 1);
  const auto partner = [&](const auto& suits) {
    std::vector<plan::ValueId> suiting;
    std::ranges::copy_if(values, std::back_inserter(suiting), suits);
    return suiting.empty() ? values[0] : suiting[random.below(suiting.size())];
  };
  const auto unary = [&]() -> const ops::Operator& {
    return random.below(2) == 0 ? ops::relu() : ops::neg();
  };
  const auto binary = [&]() -> const ops::Operator& {
    return random.below(2) == 0 ? ops::add() : ops::mul();
  };
  for (std::size_t n = 0; n < nodes; ++n) {
    const plan::ValueId x = values[random.below(values.size())];
    const plan::Type type = graph.type(x);
    const plan::ValueId alike =
        partner([&](plan::ValueId y) { return graph.value(y).type == graph.value(x).type; });
    Result<plan::ValueId> made = x;
    switch (random.below(9)) {
      case 0:
      case 1: made = ops::add_pointwise(graph, unary(), {x}); break;
      case 2:
      case 3: made = ops::add_pointwise(graph, binary(), {x, alike}); break;
      case 4: {  // two sums or products that share an operand
        const plan::ValueId z = values[random.below(values.size())];
        if (graph.value(z).type != graph.value(x).type) break;
        const plan::ValueId left = ops::add_pointwise(graph, ops::mul(), {x, z}).value();
        const plan::ValueId right = ops::add_pointwise(graph, ops::mul(), {z, alike}).value();
        made = ops::add_pointwise(graph, ops::add(), {left, right});
        break;
      }
      case 5:
      case 6: {
        const plan::ValueId y = partner([&](plan::ValueId other) {
          const plan::Type with = graph.type(other);
          return with.has(type.dims[0].index) != with.has(type.dims[1].index);
        });
        std::vector<Symbol> to;
        for (const plan::Dim& dim : type.dims)
          if (!graph.type(y).has(dim.index)) to.push_back(dim.index);
        for (const plan::Dim& dim : graph.type(y).dims)
          if (!type.has(dim.index)) to.push_back(dim.index);
        if (to.size() == 2) made = ops::add_contract(graph, {x, y}, to);
        break;
      }
      case 7: {
        const std::vector<Symbol> to = {type.dims[1].index, type.dims[0].index};
        made = ops::add_transpose(graph, x, to);
        break;
      }
      default:
        if (type.dims[0].size > 1)
          made = ops::add_slice(graph, x, type.dims[0].index, 0, type.dims[0].size - 1);
    }
    if (made.ok() && *made != x) values.push_back(*made);
  }
  std::vector<char> is_read(graph.value_count(), 0);
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    for (const plan::ValueId read : graph.node(plan::NodeId(n)).inputs) is_read[read.value] = 1;
  for (std::size_t v = 0; v < is_read.size(); ++v)
    if (is_read[v] == 0 || random.below(8) == 0)
      graph.add_output(graph.symbol(fmt::format("y{}", v)), plan::ValueId(v));
  return graph;
}

std::string describe(const Draft& draft) {
  std::string text;
  const plan::Graph& graph = draft.graph();
  for (const plan::NodeId node : draft.nodes()) {
    text += fmt::format("%{} {}", node.value, graph.node(node).op->name());
    for (const plan::ValueId input : draft.inputs(node)) text += fmt::format(" {}", input.value);
    for (std::size_t k = 0; k < graph.node(node).result_count; ++k) {
      text += " read by";
      for (const plan::NodeId reader : draft.readers(graph.result(node, k)))
        text += fmt::format(" %{}", reader.value);
      if (draft.is_output(graph.result(node, k))) text += " and outside";
    }
    text += '\n';
  }
  for (const plan::Output& output : draft.outputs())
    text += fmt::format("{}={}\n", graph.text(output.name), output.value.value);
  return text + fmt::format("{} nodes, {:016x}\n", draft.live_count(), draft.hash());
}

std::vector<std::vector<double>> outputs_of(const plan::Graph& graph) {
  std::map<std::string, ops::Tensor<double>, std::less<>> sources;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::NodeView node = graph.view(plan::NodeId(n));
    if (&node.op() != &ops::input() && &node.op() != &ops::parameter()) continue;
    const std::string name(node.word(0));
    ops::Tensor<double> tensor;
    for (const plan::Dim& dim : node.result_type(0).dims) tensor.sizes.push_back(dim.size);
    Random random(Hasher().text(name).digest().low);
    for (std::int64_t i = 0; i < node.result_type(0).elements(); ++i)
      tensor.data.push_back(random.uniform() * 2 - 1);
    sources[name] = std::move(tensor);
  }
  const ops::Sources<double> find = [&](std::string_view name) -> const ops::Tensor<double>* {
    const auto at = sources.find(name);
    return at == sources.end() ? nullptr : &at->second;
  };
  auto outputs = ops::interpret<double>(graph, find);
  if (!outputs.ok()) ADD_FAILURE() << outputs.error().message;
  std::vector<std::vector<double>> numbers;
  for (ops::Tensor<double>& output : outputs.value()) numbers.push_back(std::move(output.data));
  return numbers;
}

bool agree(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (a[k].size() != b[k].size()) return false;
    for (std::size_t i = 0; i < a[k].size(); ++i)
      if (!(std::abs(a[k][i] - b[k][i]) <= 1e-9 * (1 + std::abs(a[k][i])))) return false;
  }
  return true;
}

}  // namespace weft::rule
