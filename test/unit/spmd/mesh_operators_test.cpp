// Every operator on a mesh: sliced along each loop that its signature permits, and on partial
// values wherever it is said to carry them. Then plans of random operators with random layouts.
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "mesh_case.h"
#include "weft/plan/graph/signature.h"
#include "weft/plan/ops/build.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/spmd/carries.h"

namespace weft::ops {
namespace {

// The case with operand i in layout layouts[i].
plan::Graph laid_out(const Case& c, const std::vector<std::string>& layouts) {
  std::string text = text_of(c);
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    const std::string name = fmt::format("{{name=x{}, ", i);
    text.replace(text.find(name), name.size(), fmt::format("{}layout=\"{}\", ", name, layouts[i]));
  }
  return read_plan(text);
}

Tensors<Field> inputs_of(const Case& c, const plan::Graph& graph) {
  Random random(11);
  return random_inputs<Field>(c, graph, {}, random);
}

TEST(MeshOperators, SliceAlongEveryLoop) {
  int cuts = 0, positional = 0;
  for (const Case& c : all_cases()) {
    const plan::Graph whole = graph_of(c);
    const plan::NodeView node = whole.view(plan::NodeId(whole.node_count() - 1));
    if (find_communication(node.op()) != nullptr) continue;  // along one axis only: tested elsewhere
    for (const Slicing& slicing : legal_slicings(node.op().signature(node))) {
      std::vector<std::string> layouts;
      bool cut = false;
      for (std::size_t i = 0; i < c.operands.size(); ++i) {
        const int dim = slicing.operands[i];
        cut |= dim >= 0;
        layouts.push_back(
            dim < 0 ? ""
                    : fmt::format("sliced({}) on gpu",
                                  whole.text(node.input_type(i).dims[static_cast<std::size_t>(dim)].index)));
      }
      if (!cut) continue;
      const plan::Graph graph = laid_out(c, layouts);
      const auto found = [&](std::string_view mesh) {
        return difference<Field>(graph, plan::read_mesh(mesh).value(), inputs_of(c, graph));
      };
      std::string differs = found("gpu=3");
      // Split and merge need blocks of whole rows.
      if (differs.find("do not match blocks of") != std::string::npos) differs = found("gpu=2");
      EXPECT_EQ(differs, "") << print(graph);
      ++cuts;
      positional += slicing.positional ? 1 : 0;
    }
  }
  EXPECT_GT(cuts, 150);
  EXPECT_GT(positional, 5);  // dropout, rotary, gather
}

// What carries() states is true, and it states something for the operators of linear algebra.
TEST(MeshOperators, CarryPartialValues) {
  std::set<std::string, std::less<>> sums, extremes;
  for (const Case& c : all_cases()) {
    const plan::Graph whole = graph_of(c);
    const plan::NodeView node = whole.view(plan::NodeId(whole.node_count() - 1));
    if (find_communication(node.op()) != nullptr) continue;
    for (const plan::Monoid monoid : {plan::Monoid::sum, plan::Monoid::max, plan::Monoid::min})
      for (unsigned subset = 1; subset < 1u << c.operands.size(); ++subset) {
        std::vector<bool> addends;
        std::vector<std::string> layouts;
        for (std::size_t i = 0; i < c.operands.size(); ++i) {
          addends.push_back((subset >> i & 1u) != 0);
          layouts.push_back(addends[i] ? fmt::format("partial({}) on gpu", plan::name(monoid)) : "");
        }
        if (!spmd::carries(node, monoid, addends)) continue;
        (monoid == plan::Monoid::sum ? sums : extremes).insert(c.op);
        const plan::Graph graph = laid_out(c, layouts);
        EXPECT_EQ(difference<Field>(graph, plan::read_mesh("gpu=3").value(), inputs_of(c, graph)), "")
            << print(graph);
      }
  }
  for (const std::string_view op :
       {"add", "sub", "neg", "mul", "div", "contract", "reduce", "transpose", "rename", "cast", "slice",
        "pad", "concat", "split", "merge", "conv2d", "gather", "select"})
    EXPECT_TRUE(sums.contains(op)) << op;
  for (const std::string_view op : {"relu", "maximum", "exp", "softmax", "pow", "layer-norm"})
    EXPECT_FALSE(sums.contains(op)) << op;
  EXPECT_TRUE(extremes.contains("maximum") && extremes.contains("minimum") && extremes.contains("transpose"));
  EXPECT_FALSE(extremes.contains("relu") || extremes.contains("neg") || extremes.contains("add"));
}

// Grows a plan node by node, adding what types and layouts permit.
class RandomPlan {
 public:
  RandomPlan(const plan::Mesh& mesh, std::uint64_t seed) : mesh_(mesh), random_(seed) {
    for (const std::string_view name : {"a", "b", "c"})
      dims_.push_back({graph_.symbol(name), random_.between(1, 5)});
    for (int source = 0; source < 3; ++source) add_source(source);
  }

  void grow() {
    plan::Graph longer = graph_.clone();
    const plan::ValueId x(random_.below(longer.value_count())), y(random_.below(longer.value_count()));
    const std::string_view axis = mesh_.axes[random_.below(mesh_.axes.size())].name;
    const Symbol index = dims_[random_.below(dims_.size())].index,
                 other = dims_[random_.below(dims_.size())].index;
    const std::vector<Symbol> kept = some_of(graph_.type(x));
    const auto pointwise = [&](const Operator& op) { return add_pointwise(longer, op, {x, y}); };
    switch (random_.below(17)) {
      case 0: keep(longer, pointwise(add())); break;
      case 1: keep(longer, pointwise(mul())); break;
      case 2: keep(longer, pointwise(maximum())); break;
      case 3: keep(longer, add_pointwise(longer, relu(), {x})); break;
      case 4: keep(longer, add_pointwise(longer, neg(), {x})); break;
      case 5: keep(longer, add_contract(longer, {x, y}, kept)); break;
      case 6: keep(longer, add_contract(longer, {x, y}, some_of(graph_.type(y)))); break;
      case 7: keep(longer, add_reduce(longer, "sum", x, kept)); break;
      case 8: keep(longer, add_reduce(longer, "max", x, kept)); break;
      case 9: keep(longer, add_softmax(longer, x, {&index, 1})); break;
      case 10: keep(longer, add_all_reduce(longer, x, axis, random_.below(4) == 0 ? "max" : "sum")); break;
      case 11: keep(longer, add_reduce_scatter(longer, x, axis, index)); break;
      case 12: keep(longer, add_all_gather(longer, x, axis, index)); break;
      case 13: keep(longer, add_all_to_all(longer, x, axis, index, other)); break;
      case 14: keep(longer, add_slice_across(longer, x, axis, index)); break;
      case 15: keep(longer, add_permute_ranks(longer, x, axis, random_.between(-2, 2))); break;
      case 16: keep(longer, add_broadcast(longer, x, dims_)); break;
    }
  }

  plan::Graph finished() {
    for (std::size_t v = 0; v < graph_.value_count(); ++v)
      graph_.add_output(graph_.symbol(fmt::format("v{}", v)), plan::ValueId(v));
    return std::move(graph_);
  }

 private:
  void add_source(int number) {
    std::vector<plan::Dim> dims;
    for (const plan::Dim& dim : dims_)
      if (random_.below(3) != 0) dims.push_back(dim);
    std::string layout;
    for (const plan::MeshAxis& axis : mesh_.axes) {
      const std::uint64_t draw = random_.below(3);
      if (draw == 0 || (draw == 1 && dims.empty())) continue;
      layout += fmt::format(
          "{}{} on {}", layout.empty() ? "" : ", ",
          draw == 2 ? "partial(sum)"
                    : fmt::format("sliced({})", graph_.text(dims[random_.below(dims.size())].index)),
          axis.name);
    }
    add_input(graph_, fmt::format("x{}", number), *graph_.intern_type(plan::DType::f32, dims), layout)
        .value();
  }

  std::vector<Symbol> some_of(const plan::Type& type) {
    std::vector<Symbol> some;
    for (const plan::Dim& dim : type.dims)
      if (random_.below(2) == 0) some.push_back(dim.index);
    return some;
  }

  void keep(plan::Graph& longer, const Result<plan::ValueId>& added) {
    if (added.ok() && spmd::infer_layouts(longer, mesh_).ok()) graph_ = std::move(longer);
  }

  const plan::Mesh& mesh_;
  Random random_;
  plan::Graph graph_;
  std::vector<plan::Dim> dims_;
};

RC_GTEST_PROP(MeshOperators, RandomPlansWithRandomLayouts, ()) {
  static const std::vector<std::string_view> kMeshes = {"gpu=2", "gpu=3", "gpu=4", "node=2, gpu=2",
                                                        "node=3, gpu=2"};
  const plan::Mesh mesh = plan::read_mesh(kMeshes[*rc::gen::inRange<std::size_t>(0, kMeshes.size())]).value();
  RandomPlan plan(mesh, *rc::gen::arbitrary<std::uint64_t>());
  const int tries = *rc::gen::inRange(1, 24);
  for (int i = 0; i < tries; ++i) plan.grow();
  const plan::Graph graph = plan.finished();
  const std::string found = difference<Field>(graph, mesh);
  RC_LOG() << print(mesh) << "\n" << plan::print(graph) << found;
  RC_ASSERT(found.empty());
}

}  // namespace
}  // namespace weft::ops
