#include "weft/session/prove_plan.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "weft/base/units.h"
#include "weft/cost/plan_cost.h"
#include "weft/distribute/replay.h"
#include "weft/language/bind.h"
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

class SmallModels {
 public:
  SmallModels(const Session::State& state, const Settings& settings, const language::syntax::Run& run,
              const plan::Graph& graph)
      : state_(state), settings_(settings), run_(run), graph_(graph) {}

  Result<SmallModel> make(const Attempt& attempt) const {
    const bool trains = run_.task == language::syntax::Task::train;
    Settings copy = settings_;
    WEFT_TRY(names, sizes_of(state_.catalog, run_.model));
    WEFT_TRY(overrides, apply_list(copy, run_.settings, names, run_.model.text));
    language::BindOptions options{.mode = trains ? language::Mode::train : language::Mode::infer,
                                  .sizes = overrides,
                                  .precision = settings_.precision,
                                  .plan_limit = settings_.plan_limit,
                                  .interrupted = {}};
    WEFT_TRY(whole, language::bind(state_.catalog, run_.model, options));
    options.sizes.clear();
    SmallModel small;
    for (const language::BoundSize& size : whole.sizes) {
      std::int64_t now = size.size;
      if (is_index(graph_, size.name))
        now = std::min(now, size.size <= kSmallSize ? attempt.low : attempt.high);
      options.sizes.push_back({size.name, now, {}});
      small.sizes += fmt::format("{}{} = {}", small.sizes.empty() ? "" : ", ", size.name, now);
    }
    WEFT_TRY(bound, language::bind(state_.catalog, run_.model, options));
    small.graph = std::move(bound.graph);
    if (trains) {
      WEFT_TRY(trained, train::make_training_plan(std::move(small.graph), settings_.training));
      small.graph = std::move(trained.graph);
    }
    if (cost::plan_flops(small.graph) > kMostFlops) return user_error("too much to compute by definition");
    return small;
  }

 private:
  const Session::State& state_;
  const Settings& settings_;
  const language::syntax::Run& run_;
  const plan::Graph& graph_;
};

}  // namespace

std::string SmallProof::text() const {
  if (proof.wrong) return fmt::format("not the plan of one device: {}", proof.wrong->what);
  return fmt::format("proven equal to the plan of one device at {}: {} elements over the field of 2^61 - 1",
                     sizes, print_exact(proof.elements));
}

Result<SmallProof> prove_plan(const Session::State& state, const Settings& settings,
                              const language::syntax::Run& run, const plan::Graph& graph,
                              const distribute::DistributedPlan& plan) {
  const auto began = std::chrono::steady_clock::now();
  const SmallModels models(state, settings, run, graph);
  const plan::Mesh mesh = small_mesh(plan.mesh);
  Error last = user_error("no sizes were tried");
  for (const Attempt& attempt : kAttempts) {
    Result<SmallModel> small = models.make(attempt);
    if (!small.ok()) {
      last = std::move(small).error();
      continue;
    }
    Result<distribute::DistributedPlan> replayed = distribute::replay(plan, graph, small->graph, mesh);
    if (!replayed.ok()) {
      last = std::move(replayed).error();
      continue;
    }
    WEFT_TRY(proof, distribute::prove(small->graph, *replayed));
    return SmallProof{std::move(proof), fmt::format("{} on {}", small->sizes, print(mesh)),
                      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count()};
  }
  return user_error(fmt::format("the plan could not be made small enough to be proven: {}", last.message),
                    last.hint, run.span);
}

}  // namespace weft::session
