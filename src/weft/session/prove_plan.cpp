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
  static Result<SmallModels> of(const Session::State& state, const Settings& settings,
                                const language::syntax::Run& run, const plan::Graph& graph) {
    SmallModels models(state, settings, run, graph);
    Settings copy = settings;
    WEFT_TRY(names, sizes_of(state.catalog, run.model));
    WEFT_TRY(overrides, apply_list(copy, run.settings, names, run.model.text));
    models.options_.sizes = std::move(overrides);
    WEFT_TRY(whole, language::bind(state.catalog, run.model, models.options_));
    models.whole_ = std::move(whole);
    return models;
  }

  // By the names that the model has for its sizes.
  Result<SmallModel> named(const Attempt& attempt) const {
    language::BindOptions options = options_;
    options.sizes.clear();
    SmallModel small;
    for (const language::BoundSize& size : whole_.sizes) {
      std::int64_t now = size.size;
      if (is_index(graph_, size.name))
        now = std::min(now, size.size <= kSmallSize ? attempt.low : attempt.high);
      options.sizes.push_back({size.name, now, {}});
      small.sizes += fmt::format("{}{} = {}", small.sizes.empty() ? "" : ", ", size.name, now);
    }
    WEFT_TRY(bound, language::bind(state_.catalog, run_.model, options));
    small.graph = std::move(bound.graph);
    return finish(std::move(small));
  }

  // By its sources. What INFER runs may have been rewritten, so that is made smaller itself.
  Result<SmallModel> shrunk(std::int64_t image) const {
    SmallModel small;
    WEFT_TRY(graph, distribute::shrink(trains() ? whole_.graph : graph_, {.image = image}));
    small.graph = std::move(graph);
    small.sizes = sizes_in(small.graph, whole_.sizes);
    return finish(std::move(small));
  }

 private:
  SmallModels(const Session::State& state, const Settings& settings, const language::syntax::Run& run,
              const plan::Graph& graph)
      : state_(state), settings_(settings), run_(run), graph_(graph) {
    options_ = {.mode = trains() ? language::Mode::train : language::Mode::infer,
                .sizes = {},
                .precision = settings.precision,
                .plan_limit = settings.plan_limit,
                .interrupted = {}};
  }

  bool trains() const { return run_.task == language::syntax::Task::train; }

  Result<SmallModel> finish(SmallModel small) const {
    if (trains()) {
      WEFT_TRY(trained, train::make_training_plan(std::move(small.graph), settings_.training));
      small.graph = std::move(trained.graph);
    }
    if (cost::plan_flops(small.graph) > kMostFlops) return user_error("too much to compute by definition");
    return small;
  }

  const Session::State& state_;
  const Settings& settings_;
  const language::syntax::Run& run_;
  const plan::Graph& graph_;
  language::BindOptions options_;
  language::BoundModel whole_;
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

Result<SmallProof> prove_plan(const Session::State& state, const Settings& settings,
                              const language::syntax::Run& run, const plan::Graph& graph,
                              const distribute::DistributedPlan& plan, const std::vector<bool>& own) {
  WEFT_TRY(models, SmallModels::of(state, settings, run, graph));
  Attempts attempts(graph, plan, own);
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
      attempts.last().hint, run.span);
}

bool is_small(const plan::Graph& graph, const plan::Mesh& mesh) {
  constexpr std::int64_t kMostElements = 1 << 18;
  constexpr std::int32_t kMostSmallRanks = 16;
  if (mesh.ranks() > kMostSmallRanks) return false;
  for (std::size_t v = 0; v < graph.value_count(); ++v)
    if (graph.type(plan::ValueId(v)).elements() > kMostElements) return false;
  return cost::plan_flops(graph) * mesh.ranks() <= kMostFlops;
}

Result<Proof> require_proof(const Session::State& state, const Settings& settings,
                            const language::syntax::Run& run, const plan::Graph& graph,
                            const distribute::DistributedPlan& plan) {
  if (!settings.prove) return Proof{false, "not proven: the setting prove is false"};
  const Digest digest = Hasher()
                            .digest_of(plan::structural_hash(graph))
                            .digest_of(plan::structural_hash(plan.graph))
                            .text(print(plan.mesh))
                            .digest();
  if (const auto known = state.proven.find(digest); known != state.proven.end())
    return Proof{true, known->second};
  const Result<SmallProof> proof = prove_plan(state, settings, run, graph, plan);
  if (!proof.ok()) return Proof{false, "not proven: " + proof.error().message};
  if (!proof->proof.holds())
    return user_error(fmt::format("the plan found is wrong and is refused: {}", proof->proof.wrong->what),
                      "this is a mistake in weft: please report it, with the statement", run.span);
  state.proven.emplace(digest, proof->text());
  return Proof{true, proof->text()};
}

}  // namespace weft::session
