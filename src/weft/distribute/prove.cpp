#include "weft/distribute/prove.h"

#include <algorithm>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "weft/base/random.h"
#include "weft/distribute/open_nodes.h"
#include "weft/ops/communication.h"
#include "weft/ops/interpret.h"
#include "weft/ops/operators.h"
#include "weft/plan/verify.h"
#include "weft/spmd/mesh.h"

namespace weft::distribute {
namespace {

using ops::Field;
using ops::Tensor;
using plan::NodeId;
using plan::NodeView;
using plan::ValueId;
using spmd::MeshTensor;

// More elements in one value than this are not for a definition to compute.
constexpr std::int64_t kMostElements = 1 << 20;

class Prover {
 public:
  // `open`: the original with the nodes open that the plan opened.
  Prover(const plan::Graph& original, const plan::Graph& open, const DistributedPlan& plan, Random& random)
      : original_(original), open_(open), plan_(plan), random_(random) {
    numbers_.key = random.next();
  }

  Result<std::optional<Disagreement>> run(std::int64_t& elements) {
    WEFT_TRY_STATUS(draw_sources());
    WEFT_TRY(expected, ops::interpret<Field>(original_, whole_sources(), numbers_, kMostElements));
    WEFT_TRY(held, spmd::interpret_on_mesh<Field>(plan_.graph, plan_.mesh, mesh_sources(), numbers_,
                                                  kMostElements));
    bool equal = true;
    for (std::size_t o = 0; o < plan_.graph.outputs().size(); ++o) {
      const plan::Output& output = plan_.graph.outputs()[o];
      WEFT_TRY(place, find_output(plan_.graph.text(output.name)));
      const Result<Tensor<Field>> joined =
          spmd::join_from_mesh<Field>(held[o], plan_.graph.type(output.value), plan_.mesh, numbers_);
      elements += expected[place].elements();
      equal &= joined.ok() && joined->data == expected[place].data;
    }
    if (equal) return std::optional<Disagreement>();
    return locate();
  }

 private:
  ops::Sources<Field> whole_sources() const {
    return [this](std::string_view name) -> const Tensor<Field>* {
      const auto found = whole_.find(name);
      return found == whole_.end() ? nullptr : &found->second;
    };
  }
  spmd::MeshSources<Field> mesh_sources() const {
    return [this](std::string_view name) -> const MeshTensor<Field>* {
      const auto found = cut_.find(name);
      return found == cut_.end() ? nullptr : &found->second;
    };
  }

  // Whole numbers are positions and labels: small ones are legal everywhere.
  Field draw(plan::DType dtype) {
    constexpr std::int64_t kFewest = 2;
    return plan::is_real(dtype) ? Field(random_.next())
                                : Field(static_cast<std::uint64_t>(random_.between(0, kFewest - 1)));
  }

  Status draw_sources() {
    for (std::size_t n = 0; n < plan_.graph.node_count(); ++n) {
      const NodeView node = plan_.graph.view(NodeId(n));
      if (!ops::is_source(node.op())) continue;
      const plan::Type type = node.result_type(0);
      if (type.elements() > kMostElements)
        return user_error(fmt::format("{} is too large to be proven by running: {}",
                                      describe(plan_.graph, node.id()), print(type, plan_.graph.symbols())),
                          "prove it at smaller sizes");
      Tensor<Field> tensor;
      for (const plan::Dim& dim : type.dims) tensor.sizes.push_back(dim.size);
      for (std::int64_t e = 0; e < type.elements(); ++e) tensor.data.push_back(draw(type.dtype));
      WEFT_TRY(shares, spmd::split_for_mesh<Field>(tensor, type, plan_.layouts[node.result(0).value],
                                                   plan_.mesh, numbers_, random_));
      cut_.emplace(node.word(0), std::move(shares));
      whole_.emplace(node.word(0), std::move(tensor));
    }
    return {};
  }

  Result<std::size_t> find_output(std::string_view name) const {
    for (std::size_t o = 0; o < original_.outputs().size(); ++o)
      if (original_.text(original_.outputs()[o].name) == name) return o;
    return user_error(
        fmt::format("the distributed plan has an output {} that the plan of one device lacks", name));
  }

  static plan::Graph with_all_values(const plan::Graph& graph) {
    plan::Graph all = graph.clone();
    all.clear_outputs();
    for (std::size_t v = 0; v < graph.value_count(); ++v)
      all.add_output(all.symbol(fmt::format("value {}", v)), ValueId(v));
    return all;
  }

  // The value of the plan of one device that a value of the distributed plan should equal: communication
  // changes where a value is held, not what it is. Invalid where there is none.
  ValueId meaning(ValueId value) const {
    while (ops::find_communication(plan_.graph.view(plan_.graph.value(value).producer).op()) != nullptr)
      value = plan_.graph.view(plan_.graph.value(value).producer).input(0);
    const plan::Value& made = plan_.graph.value(value);
    const NodeId origin = plan_.origin[made.producer.value];
    if (!origin.valid() || made.result >= open_.node(origin).result_count) return {};
    return open_.result(origin, made.result);
  }

  // Runs both again with every value as an output, and finds the first that differs.
  Result<std::optional<Disagreement>> locate() {
    const plan::Graph whole = with_all_values(open_), spread = with_all_values(plan_.graph);
    WEFT_TRY(expected, ops::interpret<Field>(whole, whole_sources(), numbers_, kMostElements));
    WEFT_TRY(held,
             spmd::interpret_on_mesh<Field>(spread, plan_.mesh, mesh_sources(), numbers_, kMostElements));
    for (std::size_t v = 0; v < plan_.graph.value_count(); ++v) {
      const ValueId meant = meaning(ValueId(v));
      if (!meant.valid()) continue;
      const plan::Type type = plan_.graph.type(ValueId(v));
      const Tensor<Field>& right = expected[meant.value];
      const Result<Tensor<Field>> joined = spmd::join_from_mesh<Field>(held[v], type, plan_.mesh, numbers_);
      if (joined.ok() && joined->data == right.data) continue;
      return std::optional(blame(ValueId(v), held[v], right));
    }
    return std::optional(
        Disagreement{NodeId(0u), -1, "the two plans' outputs differ, none of their values does"});
  }

  static bool fits(const Tensor<Field>& tensor, const plan::Type& type) {
    return std::ranges::equal(tensor.sizes, type.dims, {}, {}, &plan::Dim::size);
  }

  Disagreement blame(ValueId value, const MeshTensor<Field>& held, const Tensor<Field>& right) {
    const NodeId node = plan_.graph.value(value).producer;
    Disagreement found{node, -1, {}};
    const bool adds = std::ranges::any_of(held.layout.axes, [](const plan::AxisLayout& axis) {
      return axis.is_partial() || axis.is_varying();
    });
    const std::string where = fmt::format("node {}, {}", describe(plan_.graph, node),
                                          print(held.layout, plan_.mesh, plan_.graph.symbols()));
    if (!adds && fits(right, plan_.graph.type(value))) {
      const Result<MeshTensor<Field>> wanted = spmd::split_for_mesh<Field>(
          right, plan_.graph.type(value), held.layout, plan_.mesh, numbers_, random_);
      for (std::size_t rank = 0; wanted.ok() && rank < held.ranks.size(); ++rank)
        if (held.ranks[rank].data != wanted->ranks[rank].data) {
          found.rank = static_cast<std::int32_t>(rank);
          found.what = fmt::format("{}: rank {} holds something else than its share", where, rank);
          return found;
        }
    }
    found.what = fmt::format("{}: what the ranks hold does not make up the value", where);
    return found;
  }

  const plan::Graph& original_;
  const plan::Graph& open_;
  const DistributedPlan& plan_;
  Random& random_;
  ops::Numbers<Field> numbers_;
  std::map<std::string, Tensor<Field>, std::less<>> whole_;
  std::map<std::string, MeshTensor<Field>, std::less<>> cut_;
};

}  // namespace

Result<PlanProof> prove(const plan::Graph& original, const DistributedPlan& plan,
                        const ProveOptions& options) {
  PlanProof proof;
  plan::Graph open;
  if (!plan.opened.empty()) {
    WEFT_TRY(opened, open_nodes(original, plan.opened));
    open = std::move(opened);
  }
  const plan::Graph& one_device = plan.opened.empty() ? original : open;
  Random random(options.seed);
  while (proof.draws < options.draws && proof.holds()) {
    WEFT_TRY(wrong, Prover(original, one_device, plan, random).run(proof.elements));
    proof.wrong = std::move(wrong);
    ++proof.draws;
  }
  return proof;
}

}  // namespace weft::distribute
