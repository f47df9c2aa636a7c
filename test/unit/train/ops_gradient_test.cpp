// Every gradient compared with central differences in double: the loss is the first result times
// random weights, summed, and each element of each real operand is perturbed in both directions.
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "ops_case.h"
#include "weft/parallel/train/differentiate.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/build.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/ops/pointwise.h"

namespace weft::ops {
namespace {

// Without a gradient by nature (rounding to integers, optimizers), or without need: the gradients
// of gradients. Rows of pointwise_rows.h declare it themselves.
const std::set<std::string, std::less<>> kWithoutGradient = {
    "constant",
    "position",
    "addends",
    "encode",
    "decode",
    "slot",
    "exchange",  // of a rank's plan, which is never differentiated
    "sgd",
    "momentum",
    "adam",
    "adamw",
    "cross-entropy-gradient",
    "attention-gradient",
    "attention-merge",  // of a rank's plan, like exchange
    "labelled",
    "stop-gradient",  // by intent: see StopsAtStopGradient
    "max-pool-gradient",
    "broadcast-from"};

// Running statistics are not trained.
bool wants_gradient(const Case& c, std::size_t operand) { return c.op != "batch-norm" || operand == 0; }

bool lacks_gradient(std::string_view op) {
  const Pointwise* const row = find_pointwise(*all().find(op));
  return kWithoutGradient.contains(op) || (row != nullptr && row->gradient == nullptr);
}

bool has_gradient(const Case& c, const plan::Graph& graph) {
  if (lacks_gradient(c.op)) return false;
  const plan::ValueId y = graph.outputs()[0].value;
  if (!is_real(graph.type(y).dtype)) return false;
  for (std::size_t i = 0; i < c.operands.size(); ++i)
    if (is_real(graph.type(plan::ValueId(i)).dtype)) return true;
  return false;
}

void check_gradient(const Case& c, std::uint64_t seed) {
  SCOPED_TRACE(text_of(c));
  plan::Graph graph = graph_of(c);
  Random random(seed);
  Tensors<double> inputs = random_inputs<double>(c, graph, {}, random);

  const plan::ValueId y = graph.outputs()[0].value;
  const plan::ValueId weights = *add_input(graph, "weights", graph.value(y).type);
  inputs["weights"] = random_tensor<double>("", graph.type(y), {}, random);
  const plan::ValueId loss = *add_contract(graph, {y, weights}, {});

  std::vector<std::size_t> operands;
  std::vector<plan::ValueId> wanted;
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    if (!is_real(graph.type(plan::ValueId(i)).dtype) || !wants_gradient(c, i)) continue;
    operands.push_back(i);
    wanted.push_back(plan::ValueId(i));
  }
  graph.clear_outputs();
  graph.add_output(graph.symbol("loss"), loss);
  const plan::Graph forward = graph.clone();
  const auto gradients = train::differentiate(graph, loss, wanted);
  ASSERT_TRUE(gradients.ok()) << gradients.error().message;
  graph.clear_outputs();
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    ASSERT_TRUE((*gradients)[k].valid());
    EXPECT_EQ(graph.value((*gradients)[k]).type, graph.value(wanted[k]).type);
    graph.add_output(graph.symbol(fmt::format("d{}", k)), (*gradients)[k]);
  }
  ASSERT_TRUE(plan::verify(graph).ok());
  const std::vector<Tensor<double>> found = outputs_of(graph, inputs);

  constexpr double kStep = 1e-5;
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    Tensor<double>& x = inputs[fmt::format("x{}", operands[k])];
    for (std::size_t i = 0; i < x.data.size(); ++i) {
      const double at = x.data[i];
      x.data[i] = at + kStep;
      const double above = outputs_of(forward, inputs)[0].data[0];
      x.data[i] = at - kStep;
      const double below = outputs_of(forward, inputs)[0].data[0];
      x.data[i] = at;
      const double expected = (above - below) / (2 * kStep);
      EXPECT_NEAR(found[k].data[i], expected, 1e-6 * (1 + std::abs(expected)))
          << "operand " << operands[k] << " element " << i;
    }
  }
}

TEST(OpsGradient, AgreesWithCentralDifferences) {
  for (const Case& c : all_cases())
    if (has_gradient(c, graph_of(c)))
      for (const std::uint64_t seed : {1u, 2u}) check_gradient(c, seed);
}

TEST(OpsGradient, AgreesOnRandomShapes) {
  Random random(21);
  std::vector<Case> cases;
  std::map<std::string, int> drawn;
  for (const Case& c : all_cases())
    if (has_gradient(c, graph_of(c))) {
      cases.push_back(c);
      drawn.try_emplace(c.op, 0);
    }
  // Few random sizes are valid for a convolution's gradient.
  for (int round = 0; round < 200; ++round)
    for (const Case& c : cases) {
      // A few of each are enough.
      if (round >= 3 && drawn[c.op] >= 3) continue;
      const std::optional<Case> other = resized(c, 4, random);
      if (!other) continue;
      check_gradient(*other, random.next());
      ++drawn[c.op];
    }
  for (const auto& [op, count] : drawn) EXPECT_GT(count, 0) << op;
}

TEST(OpsGradient, EveryOperatorIsCheckedOrHasNoGradient) {
  std::set<std::string, std::less<>> covered = {"input", "parameter", "state"};
  for (const Case& c : all_cases())
    if (has_gradient(c, graph_of(c))) covered.insert(c.op);
  for (const std::string_view name : all().names())
    EXPECT_NE(covered.contains(name), lacks_gradient(name)) << name;
}

// The gradients of `op` at given operands, for a result gradient of one: equal to PyTorch's
// autograd.
std::vector<std::vector<double>> slopes(const std::string& text) {
  Result<plan::Graph> read = plan::read("plan p\n" + text, all());
  if (!read.ok()) throw std::runtime_error(read.error().message);
  plan::Graph graph = std::move(*read);
  const plan::ValueId y = graph.outputs()[0].value;
  const plan::ValueId loss = *add_reduce(graph, "sum", y, {});
  std::vector<plan::ValueId> wanted;
  Tensors<double> inputs;
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    if (const plan::NodeView node = graph.view(plan::NodeId(n)); &node.op() == &parameter())
      wanted.push_back(node.result(0));
  const auto gradients = train::differentiate(graph, loss, wanted);
  if (!gradients.ok()) throw std::runtime_error(gradients.error().message);
  graph.clear_outputs();
  for (const plan::ValueId gradient : *gradients) graph.add_output(graph.symbol("d"), gradient);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const plan::NodeView source = graph.view(graph.value(wanted[i]).producer);
    inputs[std::string(source.word(0))] = {
        sizes_of(source.result_type(0).dims),
        i == 0 ? std::vector<double>{-1, 0, 2} : std::vector<double>{-1, 1, 0}};
  }
  std::vector<std::vector<double>> found;
  for (const Tensor<double>& output : outputs_of(graph, inputs)) found.push_back(output.data);
  return found;
}

TEST(OpsGradient, TiesAndCornersMatchPyTorch) {
  const std::string a = "%0 = parameter {name=a, type=f32[d=3]}\n",
                    b = "%1 = parameter {name=b, type=f32[d=3]}\n";
  const std::string zero = "%1 = constant {value=0, dtype=f32}\n";
  using Slopes = std::vector<std::vector<double>>;
  EXPECT_EQ(slopes(a + b + "%2 = maximum %0, %1\nreturn y=%2\n"), (Slopes{{0.5, 0, 1}, {0.5, 1, 0}}));
  EXPECT_EQ(slopes(a + b + "%2 = minimum %0, %1\nreturn y=%2\n"), (Slopes{{0.5, 1, 0}, {0.5, 0, 1}}));
  // A constant is a bound, as in clamp: at the bound the gradient passes, in either order of
  // operands.
  EXPECT_EQ(slopes(a + zero + "%2 = maximum %0, %1\nreturn y=%2\n"), (Slopes{{0, 1, 1}}));
  EXPECT_EQ(slopes(a + zero + "%2 = maximum %1, %0\nreturn y=%2\n"), (Slopes{{0, 1, 1}}));
  EXPECT_EQ(slopes(a + zero + "%2 = minimum %1, %0\nreturn y=%2\n"), (Slopes{{1, 1, 0}}));
  EXPECT_EQ(slopes(a + "%1 = abs %0\nreturn y=%1\n"), (Slopes{{-1, 0, 1}}));
  EXPECT_EQ(slopes(a + "%1 = relu %0\nreturn y=%1\n"), (Slopes{{0, 0, 1}}));
  EXPECT_EQ(slopes(a + "%1 = reduce %0 {kind=max, to=[]}\nreturn y=%1\n"), (Slopes{{0, 0, 1}}));
  // x^0 is 1 for any x; 0^0 and 0^1 are ordinary too.
  EXPECT_EQ(slopes(a + zero + "%2 = pow %0, %1\nreturn y=%2\n"), (Slopes{{0, 0, 0}}));
  EXPECT_EQ(slopes(a + "%1 = constant {value=2, dtype=f32}\n%2 = pow %0, %1\nreturn y=%2\n"),
            (Slopes{{-2, 0, 4}}));
  EXPECT_EQ(
      slopes("%0 = constant {value=0, dtype=f32}\n%1 = parameter {name=b, type=f32[d=3]}\n%2 = mul %1, %1\n"
             "%3 = pow %0, %2\nreturn y=%3\n"),
      (Slopes{{0, 0, 0}}));
}

TEST(OpsGradient, StopsAtStopGradient) {
  const std::string a = "%0 = parameter {name=a, type=f32[d=3]}\n";
  using Slopes = std::vector<std::vector<double>>;
  EXPECT_EQ(slopes(a + "%1 = stop-gradient %0\n%2 = mul %1, %0\nreturn y=%2\n"), (Slopes{{-1, 0, 2}}));
}

TEST(OpsGradient, ReportsOperatorsWithoutAGradient) {
  plan::Graph graph = graph_of({"sgd", {"f32[]", "f32[]"}, "{lr=0.1}"});
  const plan::ValueId w(0);
  const auto gradients = train::differentiate(graph, graph.outputs()[0].value, {&w, 1});
  ASSERT_FALSE(gradients.ok());
  EXPECT_NE(gradients.error().message.find("sgd has no gradient"), std::string::npos)
      << gradients.error().message;
}

// Operands with random subsets of four indices of random sizes, including one.
std::vector<std::string> random_operands(std::size_t count) {
  const std::array<char, 4> names = {'a', 'b', 'c', 'd'};
  std::array<int, 4> sizes;
  for (int& size : sizes) size = *rc::gen::inRange(1, 4);
  std::vector<std::string> operands;
  for (std::size_t i = 0; i < count; ++i) {
    std::string dims;
    const auto order = *rc::gen::element(std::string("0123"), std::string("3120"), std::string("2013"));
    for (const char digit : order) {
      if (!*rc::gen::arbitrary<bool>()) continue;
      const auto at = static_cast<std::size_t>(digit - '0');
      dims += fmt::format("{}{}={}", dims.empty() ? "" : ",", names[at], sizes[at]);
    }
    operands.push_back(fmt::format("f32[{}]", dims));
  }
  return operands;
}

RC_GTEST_PROP(OpsGradient, BroadcastsOfAnyShape, ()) {
  // Not maximum: two random operands may tie within the step.
  const auto op = *rc::gen::element<std::string>("add", "sub", "mul", "div");
  check_gradient({op, random_operands(2)}, *rc::gen::arbitrary<std::uint64_t>());
}

RC_GTEST_PROP(OpsGradient, ContractionsOfAnyShape, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 4);
  Case c{"contract", random_operands(count)};
  std::string to;
  for (const char index : {'d', 'b', 'a', 'c'}) {
    bool present = false;
    for (const std::string& operand : c.operands)
      present |= operand.find(fmt::format("{}=", index)) != std::string::npos;
    if (present && *rc::gen::arbitrary<bool>()) to += fmt::format("{}{}", to.empty() ? "" : ",", index);
  }
  c.attributes = fmt::format("{{to=[{}]}}", to);
  check_gradient(c, *rc::gen::arbitrary<std::uint64_t>());
}

}  // namespace
}  // namespace weft::ops
