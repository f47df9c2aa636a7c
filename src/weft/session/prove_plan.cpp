#include "weft/session/prove_plan.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "weft/base/units.h"
#include "weft/cost/plan_cost.h"
#include "weft/distribute/replay.h"
#include "weft/distribute/shrink.h"
#include "weft/language/bind.h"
#include "weft/ops/operators.h"
#include "weft/plan/hash.h"
#include "weft/train/training_plan.h"

namespace weft::session {
namespace {

constexpr std::int32_t kSmallAxis = 2;  // ranks of an axis of the small mesh
constexpr double kMostFlops = 2e8;      // of the small plan: a few seconds over the field
constexpr std::int64_t kSmallSize =
    64;  // sizes up to this count heads and experts, larger ones features and rows

// Small sizes to try: what a size up to kSmallSize becomes, and what a larger one does.
struct Attempt {
  std::int64_t low, high;
};
constexpr Attempt kAttempts[] = {{4, 4},  {2, 4},  {2, 8},  {4, 8},  {4, 16},
                                 {2, 16}, {4, 32}, {8, 64}, {16, 96}};
// And what an image may become, until it outlasts all windows and every rank has a part of it to hold.
constexpr std::int64_t kImages[] = {32, 48, 64, 96, 128, 160, 224};

bool is_index(const plan::Graph& graph, std::string_view name) {
  const Symbol symbol = graph.symbols().find(name);
  if (!symbol.valid()) return false;
  for (std::size_t v = 0; v < graph.value_count(); ++v)
    if (graph.type(plan::ValueId(v)).has(symbol)) return true;
  return false;
}

plan::Mesh small_mesh(const plan::Mesh& mesh) {
  plan::Mesh small = mesh;
  for (plan::MeshAxis& axis : small.axes) axis.ranks = std::min(axis.ranks, kSmallAxis);
  return small;
}

struct SmallModel {
  plan::Graph graph;
  std::string sizes;
};

// "b = 4, c = 3": the named sizes that an input has as an index, as they are there.
std::string sizes_in(const plan::Graph& graph, std::span<const language::BoundSize> sizes) {
  std::string text;
  for (const language::BoundSize& size : sizes) {
    const Symbol index = graph.symbols().find(size.name);
    for (std::size_t n = 0; index.valid() && n < graph.node_count(); ++n) {
      const plan::NodeView node = graph.view(plan::NodeId(n));
      if (&node.op() != &ops::input() || !node.result_type(0).has(index)) continue;
      text +=
          fmt::format("{}{} = {}", text.empty() ? "" : ", ", size.name, node.result_type(0).size_of(index));
      break;
    }
  }
  return text;
}

class SmallModels {
 public:
  SmallModels(const Session::State& state, const Prepared& prepared) : state_(state), prepared_(prepared) {}

  // By the names that the model has for its sizes.
  Result<SmallModel> named(const Attempt& attempt) const {
    std::vector<language::SizeOverride> sizes;
    SmallModel small;
    for (const language::BoundSize& size : prepared_.sizes) {
      std::int64_t now = size.size;
      if (is_index(prepared_.plan.graph, size.name))
        now = std::min(now, size.size <= kSmallSize ? attempt.low : attempt.high);
      sizes.push_back({size.name, now, {}});
      small.sizes += fmt::format("{}{} = {}", small.sizes.empty() ? "" : ", ", size.name, now);
    }
    WEFT_TRY(bound, bind_again(state_, prepared_, mode(), sizes));
    small.graph = std::move(bound.graph);
    return finish(std::move(small));
  }

  // By its sources. What INFER runs may have been rewritten, so that is made smaller itself.
  Result<SmallModel> shrunk(std::int64_t image) {
    if (prepared_.trains() && !forward_) {
      WEFT_TRY(bound, bind_again(state_, prepared_, mode()));
      forward_ = std::move(bound.graph);
    }
    SmallModel small;
    WEFT_TRY(graph, distribute::shrink(forward_ ? *forward_ : prepared_.plan.graph, {.image = image}));
    small.graph = std::move(graph);
    small.sizes = sizes_in(small.graph, prepared_.sizes);
    return finish(std::move(small));
  }

 private:
  language::Mode mode() const { return prepared_.trains() ? language::Mode::train : language::Mode::infer; }

  Result<SmallModel> finish(SmallModel small) const {
    if (prepared_.trains()) {
      WEFT_TRY(trained, train::make_training_plan(std::move(small.graph), prepared_.settings.training));
      small.graph = std::move(trained.graph);
    }
    if (cost::plan_flops(small.graph) > kMostFlops) return user_error("too much to compute by definition");
    return small;
  }

  const Session::State& state_;
  const Prepared& prepared_;
  std::optional<plan::Graph> forward_;  // of a plan that learns
};

// The plan of these sizes, or nothing and in `last` why not.
class Attempts {
 public:
  Attempts(const plan::Graph& graph, const distribute::DistributedPlan& plan, const std::vector<bool>& own)
      : graph_(graph), plan_(plan), own_(own), mesh_(small_mesh(plan.mesh)) {}

  Result<std::optional<SmallProof>> with(Result<SmallModel> small) {
    if (!small.ok()) return nothing(std::move(small).error());
    Result<distribute::DistributedPlan> replayed =
        distribute::replay(plan_, graph_, small->graph, mesh_, own_);
    if (!replayed.ok()) return nothing(std::move(replayed).error());
    WEFT_TRY(proof, distribute::prove(small->graph, *replayed));
    return std::optional(
        SmallProof{std::move(proof), fmt::format("{} on {}", small->sizes, print(mesh_)),
                   std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count()});
  }

  const Error& last() const { return last_; }

 private:
  std::optional<SmallProof> nothing(Error why) {
    last_ = std::move(why);
    return {};
  }

  const plan::Graph& graph_;
  const distribute::DistributedPlan& plan_;
  const std::vector<bool>& own_;
  const plan::Mesh mesh_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  Error last_ = user_error("no sizes were tried");
};

}  // namespace

std::string SmallProof::text() const {
  if (proof.wrong) return fmt::format("not the plan of one device: {}", proof.wrong->what);
  return fmt::format("proven equal to the plan of one device at {}: {} elements over the field of 2^61 - 1",
                     sizes, print_exact(proof.elements));
}

Result<SmallProof> prove_plan(const Session::State& state, const Prepared& prepared,
                              const distribute::DistributedPlan& plan, const std::vector<bool>& own) {
  SmallModels models(state, prepared);
  Attempts attempts(prepared.plan.graph, plan, own);
  for (const Attempt& attempt : kAttempts) {
    WEFT_TRY(proof, attempts.with(models.named(attempt)));
    if (proof) return std::move(*proof);
  }
  for (const std::int64_t image : kImages) {
    WEFT_TRY(proof, attempts.with(models.shrunk(image)));
    if (proof) return std::move(*proof);
  }
  return user_error(
      fmt::format("the plan could not be made small enough to be proven: {}", attempts.last().message),
      attempts.last().hint, prepared.run->span);
}

bool is_small(const plan::Graph& graph, const plan::Mesh& mesh) {
  constexpr std::int64_t kMostElements = 1 << 18;
  constexpr std::int32_t kMostSmallRanks = 16;
  if (mesh.ranks() > kMostSmallRanks) return false;
  for (std::size_t v = 0; v < graph.value_count(); ++v)
    if (graph.type(plan::ValueId(v)).elements() > kMostElements) return false;
  return cost::plan_flops(graph) * mesh.ranks() <= kMostFlops;
}

Result<Proof> require_proof(const Session::State& state, const Prepared& prepared,
                            const distribute::DistributedPlan& plan) {
  if (!prepared.settings.prove) return Proof{false, "not proven: the setting prove is false"};
  const Digest digest = Hasher()
                            .digest_of(plan::structural_hash(prepared.plan.graph))
                            .digest_of(plan::structural_hash(plan.graph))
                            .text(print(plan.mesh))
                            .digest();
  if (const auto known = state.proven.find(digest); known != state.proven.end())
    return Proof{true, known->second};
  const Result<SmallProof> proof = prove_plan(state, prepared, plan);
  if (!proof.ok()) return Proof{false, "not proven: " + proof.error().message};
  if (!proof->proof.holds())
    return user_error(fmt::format("the plan found is wrong and is refused: {}", proof->proof.wrong->what),
                      "this is a mistake in weft: please report it, with the statement", prepared.run->span);
  state.proven.emplace(digest, proof->text());
  return Proof{true, proof->text()};
}

}  // namespace weft::session
