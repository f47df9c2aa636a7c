#include "weft/planner/proof/prove_plan.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/units.h"
#include "weft/language/bind.h"
#include "weft/parallel/distribute/decompose_nodes.h"
#include "weft/parallel/distribute/delayed.h"
#include "weft/parallel/distribute/local_steps.h"
#include "weft/parallel/distribute/meaning.h"
#include "weft/parallel/distribute/proof_meshes.h"
#include "weft/parallel/distribute/replay.h"
#include "weft/parallel/distribute/requirements.h"
#include "weft/parallel/distribute/shrink.h"
#include "weft/parallel/distribute/tiles.h"
#include "weft/parallel/distribute/trace_origins.h"
#include "weft/parallel/distribute/without_codecs.h"
#include "weft/parallel/pipeline/pipelined_plan.h"
#include "weft/parallel/pipeline/prove_pipelined.h"
#include "weft/parallel/train/training_plan.h"
#include "weft/plan/graph/hash.h"
#include "weft/plan/graph/transplant.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/spmd/layouts.h"
#include "weft/planner/statement/small_sizes.h"
#include "weft/predict/cost/plan_cost.h"

namespace weft::planner {
namespace {

constexpr std::int32_t kSmallAxis = 2;  // ranks per axis, if larger meshes do not fit the model
constexpr std::int64_t kProofAxis = 3;  // preferred ranks per axis in proofs (proof_meshes.h)
constexpr double kMostFlops = 2e8;      // limit for the small plan: a few seconds over the field
constexpr double kFewFlops = 2e7;       // small enough: no need to shrink further
constexpr int kMostMore = 16;           // attempts for a second mesh, once a first is proven
constexpr std::int64_t kSmallSize =
    64;  // sizes up to this count as heads and experts, larger ones as features and rows

// Small sizes to try if the search by names found none: for sizes up to kSmallSize, and for larger
// ones.
struct Attempt {
  std::int64_t low, high;
};
constexpr Attempt kAttempts[] = {{4, 4},  {2, 4},  {2, 8},  {4, 8},  {4, 16},
                                 {2, 16}, {4, 32}, {8, 64}, {16, 96}};
// Sizes for images, increasing until they exceed all windows and every rank has a part.
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

// "b = 4, c = 3": the named sizes of input indices, as they are in this graph.
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

bool has_output(const plan::Graph& graph, std::string_view name) {
  return std::ranges::any_of(graph.outputs(),
                             [&](const plan::Output& output) { return graph.text(output.name) == name; });
}

class SmallModels {
 public:
  // `at_least`: lower limits for sizes found by name.
  SmallModels(const Knowledge& state, const Prepared& prepared, const plan::Graph& model,
              std::map<std::string, std::int64_t> at_least)
      : state_(state),
        prepared_(prepared),
        model_(model),
        learns_(model.has(plan::Phase::update)),
        at_least_(std::move(at_least)) {}

  // With small sizes found by name that the model accepts.
  Result<SmallModel> found(std::int64_t multiple, std::vector<language::SizeOverride>& sizes) const {
    if (prepared_.norm_shares > 1) return user_error("named sizes cannot be split into shares of the batch");
    auto found = find_small_sizes(
        state_, prepared_,
        {.mode = mode(), .multiple = multiple, .other_than = std::move(sizes), .at_least = at_least_});
    if (!found) return user_error("the model has no names for its sizes");
    sizes = std::move(*found);
    SmallModel small;
    for (const language::SizeOverride& size : sizes)
      small.sizes += fmt::format("{}{} = {}", small.sizes.empty() ? "" : ", ", size.name, size.size);
    WEFT_TRY(bound, bind_again(state_, prepared_, mode(), sizes));
    small.graph = std::move(bound.graph);
    return finish(std::move(small));
  }

  // With all named sizes set according to `attempt`.
  Result<SmallModel> named(const Attempt& attempt) const {
    std::vector<language::SizeOverride> sizes;
    SmallModel small;
    for (const language::BoundSize& size : prepared_.sizes) {
      std::int64_t now = size.size;
      if (is_index(model_, size.name))
        now = std::min(now, size.size <= kSmallSize ? attempt.low : attempt.high);
      sizes.push_back({size.name, now, {}});
      small.sizes += fmt::format("{}{} = {}", small.sizes.empty() ? "" : ", ", size.name, now);
    }
    WEFT_TRY(bound, bind_again(state_, prepared_, mode(), sizes));
    small.graph = std::move(bound.graph);
    return finish(std::move(small));
  }

  // Shrinks the bound plan, according to the constraints of its operators.
  Result<SmallModel> shrunk(const distribute::SmallSizes& sizes) {
    if (!forward_) {
      WEFT_TRY(bound, bind_again(state_, prepared_, mode()));
      forward_ = std::move(bound.graph);
    }
    SmallModel small;
    WEFT_TRY(graph, distribute::shrink(*forward_, sizes));
    small.graph = std::move(graph);
    small.sizes = sizes_in(small.graph, prepared_.sizes);
    return finish(std::move(small));
  }

 private:
  language::Mode mode() const { return learns_ ? language::Mode::train : language::Mode::infer; }

  Result<SmallModel> finish(SmallModel small) const {
    if (learns_) {
      WEFT_TRY(trained, make_learning(prepared_, std::move(small.graph)));
      small.graph = std::move(trained.graph);
    }
    // Adds outputs that were requested in addition to the model's own.
    for (const plan::Output& output : model_.outputs())
      if (const std::string_view name = model_.text(output.name);
          !has_output(small.graph, name) && output.value.value < small.graph.value_count())
        plan::Transplant(model_, small.graph).output(output, output.value);
    if (cost::plan_flops(small.graph) > kMostFlops)
      return user_error("too large for the reference interpreter");
    return small;
  }

  const Knowledge& state_;
  const Prepared& prepared_;
  const plan::Graph& model_;
  const bool learns_;
  const std::map<std::string, std::int64_t> at_least_;
  std::optional<plan::Graph> forward_;
};

// What is to be proven: the prepared plan, its rewritten version and its distributed version. The
// last two are optional.
struct Claim {
  const plan::Graph* model = nullptr;
  const distribute::DistributedPlan* rewritten = nullptr;  // on a mesh of one rank
  const distribute::DistributedPlan* spread = nullptr;     // version of the rewritten plan, or of the model
  std::int64_t norm_shares = 1;
  // Time limit.
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
};

// Proves the claim on each mesh, at the first sizes that work there.
class Attempts {
 public:
  explicit Attempts(const Claim& claim) : claim_(claim) {
    if (claim.spread != nullptr)
      meshes_ = distribute::proof_meshes(*claim.spread);
    else
      meshes_ = {plan::Mesh()};
    // Constants of a written plan may be right by chance for one choice of sizes, so two are tried.
    if (meshes_.size() == 1) meshes_.push_back(meshes_[0]);
    if (is_pipelined()) keep_micro_batches();
    proven_.resize(meshes_.size());
  }

  // Proves on all remaining meshes at these sizes.
  void at(const Result<SmallModel>& small) {
    if (!small.ok()) return keep(small.error());
    for (std::size_t mesh = 0; mesh < meshes_.size() && proof_.holds(); ++mesh)
      if (!proven_[mesh]) prove_on(mesh, *small);
  }
  // Proves on the first remaining mesh only.
  void once_at(const Result<SmallModel>& small) {
    if (!small.ok()) return keep(small.error());
    const auto left = std::ranges::find(proven_, false);
    if (left != proven_.end() && proof_.holds())
      prove_on(static_cast<std::size_t>(left - proven_.begin()), *small);
  }
  // Replaces remaining meshes, for which no sizes were found, by the smallest ones.
  void shorten_meshes() {
    for (std::size_t mesh = 0; mesh < meshes_.size(); ++mesh)
      if (!proven_[mesh]) meshes_[mesh] = small_mesh(meshes_[mesh]);
  }

  bool done() const {
    return !proof_.holds() || std::ranges::all_of(proven_, [](bool proven) { return proven; });
  }
  bool is_late() const { return std::chrono::steady_clock::now() >= claim_.until; }
  bool has_some() const {
    return std::ranges::any_of(proven_, [](bool proven) { return proven; });
  }
  std::int64_t multiple() const {
    std::int64_t multiple = 1, micro = 1;
    for (const plan::Mesh& mesh : meshes_)
      for (const plan::MeshAxis& axis : mesh.axes)
        if (is_pipelined() && axis.name == pipeline::kMicroAxis)
          micro = std::max<std::int64_t>(micro, axis.ranks);
        else
          multiple = std::lcm(multiple, axis.ranks);
    return multiple * micro;  // micro-batches have equal sizes
  }
  const Error& last() const { return last_; }

  SmallProof result() const {
    distribute::PlanProof proof = proof_;
    for (const std::optional<std::string>& unseen : {unseen_of_rules_, unseen_})
      if (unseen && proof.unseen.empty()) proof.unseen = *unseen;
    return {std::move(proof),
            fmt::format("{}{}", fmt::join(where_, " and "), claim_.spread != nullptr ? " ranks" : ""),
            std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count(),
            claim_.rewritten != nullptr,
            claim_.norm_shares,
            is_pipelined()};
  }
  void refuse(distribute::BrokenRequirement broken) {
    proof_.wrong = distribute::Disagreement{broken.node, -1, std::move(broken.what)};
  }

 private:
  bool is_pipelined() const { return claim_.spread != nullptr && claim_.spread->time.has_value(); }

  // The order of micro-batches is proven too, so their number is kept, up to enough to fill all
  // stages.
  void keep_micro_batches() {
    constexpr std::int64_t kMostMicro = 8;
    for (plan::Mesh& mesh : meshes_)
      for (plan::MeshAxis& axis : mesh.axes)
        if (axis.name == pipeline::kMicroAxis)
          axis.ranks = static_cast<std::int32_t>(
              std::min(claim_.spread->time->distribution.micro_batches, kMostMicro));
  }

  // Runs the ranks of all stages, each stage on the small mesh.
  Result<distribute::PlanProof> prove_pipelined(const plan::Graph& small, distribute::DistributedPlan plan,
                                                std::uint64_t seed) const {
    distribute::PipelineInfo time = *claim_.spread->time;
    if (plan.graph.node_count() != time.position.size())
      return user_error("the plan has other nodes at small sizes");
    for (plan::MeshAxis& axis : time.distribution.mesh.axes)
      if (const int inner = plan.mesh.find(axis.name); inner >= 0)
        axis.ranks = plan.mesh.axes[static_cast<std::size_t>(inner)].ranks;
    if (const int micro = plan.mesh.find(pipeline::kMicroAxis); micro >= 0)
      time.distribution.micro_batches = plan.mesh.axes[static_cast<std::size_t>(micro)].ranks;
    pipeline::fit_micro_batches(time.distribution);
    plan.time = std::move(time);
    return pipeline::prove_pipelined(small, plan, seed);
  }

  void prove_on(std::size_t mesh, const SmallModel& small) {
    if (is_late()) return keep(user_error("out of time"));
    const plan::Graph *one_device = claim_.model, *small_device = &small.graph;
    const distribute::ProveOptions options{.draws = 1, .in_floats = !has_some(), .seed = mesh + 1};
    distribute::DistributedPlan rewritten;
    if (claim_.rewritten != nullptr) {
      auto replayed =
          distribute::replay(*claim_.rewritten, *one_device, *small_device, claim_.rewritten->mesh);
      if (!replayed.ok()) return keep(std::move(replayed).error());
      rewritten = std::move(*replayed);
      if (!take(distribute::prove(*small_device, rewritten, options), unseen_of_rules_)) return;
      one_device = &claim_.rewritten->graph;
      small_device = &rewritten.graph;
    }
    if (claim_.spread != nullptr && proof_.holds()) {
      auto replayed = distribute::replay(*claim_.spread, *one_device, *small_device, meshes_[mesh]);
      if (!replayed.ok()) return keep(std::move(replayed).error());
      if (!take(is_pipelined() ? prove_pipelined(*small_device, std::move(*replayed), options.seed)
                               : distribute::prove(*small_device, *replayed, options),
                unseen_))
        return;
    }
    proven_[mesh] = true;
    remember(small.sizes, meshes_[mesh]);
  }

  // `unseen`: what no draw has exercised at any sizes so far.
  bool take(Result<distribute::PlanProof> found, std::optional<std::string>& unseen) {
    if (!found.ok()) {
      last_ = std::move(found).error();
      return false;
    }
    if (!unseen || found->unseen.empty()) unseen = std::move(found->unseen);
    proof_.draws += found->draws;
    proof_.elements += found->elements;
    proof_.wrong = std::move(found->wrong);
    proof_.rounded.merge(found->rounded);
    if (!found->rounded_to.empty()) proof_.rounded_to = found->rounded_to;
    return true;
  }

  // "b = 3, s = 5 on 2 x 3 and 3 x 2 ranks": equal sizes are printed once.
  void remember(const std::string& sizes, const plan::Mesh& mesh) {
    std::vector<std::int32_t> ranks;
    for (const plan::MeshAxis& axis : mesh.axes) ranks.push_back(axis.ranks);
    const std::string on =
        claim_.spread == nullptr ? std::string() : fmt::format("{}", fmt::join(ranks, " x "));
    if (sizes != last_sizes_)
      where_.push_back(sizes + (on.empty() || sizes.empty() ? "" : " on ") + on);
    else if (where_.empty() || !where_.back().ends_with(on))
      where_.push_back(on);
    last_sizes_ = sizes;
  }

  void keep(Error why) { last_ = std::move(why); }

  const Claim& claim_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::vector<plan::Mesh> meshes_;
  std::vector<bool> proven_;  // by mesh
  distribute::PlanProof proof_;
  std::optional<std::string> unseen_of_rules_, unseen_;
  std::vector<std::string> where_;
  std::string last_sizes_;
  Error last_ = user_error("no sizes were tried");
};

std::optional<distribute::BrokenRequirement> broken_promise(const Claim& claim) {
  const plan::Graph* one_device = claim.model;
  if (claim.rewritten != nullptr) {
    if (auto broken = find_broken_requirement(*one_device, *claim.rewritten)) return broken;
    one_device = &claim.rewritten->graph;
  }
  if (claim.spread != nullptr) return find_broken_requirement(*one_device, *claim.spread);
  return {};
}

bool has_own(const distribute::DistributedPlan* plan) {
  return plan != nullptr && std::ranges::any_of(plan->own, [](bool own) { return own; });
}

// Least sizes, so that every tile has at least one element on kProofAxis ranks.
std::map<std::string, std::int64_t> sizes_of_tiles(const Claim& claim) {
  if (claim.spread == nullptr) return {};
  return distribute::TileSlices(*claim.spread).most(kProofAxis);
}

Result<SmallProof> prove_claim(const Knowledge& state, const Prepared& prepared, const Claim& claim) {
  SmallModels models(state, prepared, *claim.model, sizes_of_tiles(claim));
  Attempts attempts(claim);
  if (auto broken = broken_promise(claim)) {
    attempts.refuse(std::move(*broken));
    return attempts.result();
  }
  const bool twice = has_own(claim.rewritten) || has_own(claim.spread);
  std::vector<language::SizeOverride> sizes;
  const Result<SmallModel> first = models.found(1, sizes);
  const auto by_names = [&] {
    if (twice) {
      attempts.once_at(first);
      if (!attempts.done()) attempts.once_at(models.found(1, sizes));
    }
    attempts.at(first);
    if (attempts.done()) return;
    sizes.clear();
    attempts.at(models.found(attempts.multiple(), sizes));
  };
  int more = 0;
  std::set<Digest> tried;
  const auto by_ties = [&](bool alike) {
    for (const bool grow_ones : {true, false})
      for (const std::int64_t rows : kImages)
        for (const std::int64_t columns : {kImages[0] + 4, rows + rows / 8})
          for (const std::int64_t multiple : {std::int64_t{1}, attempts.multiple()}) {
            if (attempts.done() || attempts.is_late() || (attempts.has_some() && ++more > kMostMore)) return;
            distribute::SmallSizes small{.multiple = multiple,
                                         .rows = rows,
                                         .columns = columns,
                                         .grow_ones = grow_ones,
                                         .alike = alike};
            const Result<SmallModel> shrunk = models.shrunk(small);
            // Without sliding windows, rows and columns do not matter.
            if (shrunk.ok() && !tried.insert(plan::structural_hash(shrunk->graph)).second) continue;
            if (twice) attempts.once_at(shrunk);
            small.turn = 1;
            if (twice && !attempts.done()) attempts.once_at(models.shrunk(small));
            attempts.at(shrunk);
            if (!shrunk.ok()) break;
          }
  };
  // If the plan found by names is large, shrinking is faster.
  const bool is_cheap = first.ok() && cost::plan_flops(first->graph) <= kFewFlops;
  if (is_cheap) by_names();
  if (!attempts.done()) by_ties(false);
  if (!attempts.done() && !is_cheap) by_names();
  if (!attempts.done()) by_ties(true);
  if (!attempts.done() && !attempts.has_some() && !attempts.is_late()) {
    attempts.shorten_meshes();
    tried.clear();
    for (const Attempt& attempt : kAttempts)
      if (!attempts.done()) attempts.at(models.named(attempt));
    if (!attempts.done()) by_ties(false);
    if (!attempts.done()) by_ties(true);
  }
  if (attempts.done() || attempts.has_some()) return attempts.result();
  return user_error(
      fmt::format("the plan could not be made small enough to prove: {}", attempts.last().message),
      attempts.last().hint, prepared.run->span);
}

// A delayed gradient is proven as if applied at once.
Result<bool> take_back_delay(const distribute::DistributedPlan*& plan, distribute::DistributedPlan& exact) {
  if (plan == nullptr || distribute::find_delayed(plan->graph).empty()) return false;
  WEFT_TRY(at_once, distribute::without_delay(*plan));
  exact = std::move(at_once);
  plan = &exact;
  return true;
}

// The error of codecs has a bound but no proof: the plan is proven as if their values were sent
// uncoded.
Result<SmallProof> prove_up_to_codecs(const Knowledge& state, const Prepared& prepared, Claim claim) {
  distribute::DistributedPlan at_once;
  WEFT_TRY(is_delayed, take_back_delay(claim.spread, at_once));
  if (claim.spread == nullptr || !distribute::has_codecs(claim.spread->graph)) {
    WEFT_TRY(proof, prove_claim(state, prepared, claim));
    proof.but_for_delay = is_delayed;
    if (claim.spread != nullptr)
      proof.steps_between_averages = distribute::steps_between_sums(claim.spread->graph);
    return proof;
  }
  WEFT_TRY(exact, distribute::without_codecs(*claim.spread));
  claim.spread = &exact;
  WEFT_TRY(proof, prove_claim(state, prepared, claim));
  proof.up_to_codecs = true;
  proof.but_for_delay = is_delayed;
  return proof;
}

// Local batch norms make a different model, which is what the proof refers to.
std::string but_for_norms(std::int64_t shares) {
  if (shares == 1) return {};
  return fmt::format(" except for local batch norm statistics, each over one of {} shares of the batch",
                     shares);
}

std::string up_to_rounding(const distribute::PlanProof& proof) {
  constexpr std::size_t kNamed = 4;
  if (proof.rounded.empty()) return {};
  std::string names;
  std::size_t named = 0;
  for (const std::string& name : proof.rounded)
    if (named++ < kNamed) names += (names.empty() ? "" : ", ") + name;
  if (named > kNamed) names += fmt::format(" and {} more", named - kNamed);
  return fmt::format(" up to rounding to {} of {}", proof.rounded_to, names);
}

// A rewritten one-device plan as the plan of one rank.
Result<distribute::DistributedPlan> on_one_rank(const plan::Graph& model, const plan::Graph& rewritten) {
  distribute::DistributedPlan plan;
  plan.graph = rewritten.clone();
  plan.mesh.axes = {{"rank", 1}};
  WEFT_TRY(layouts, spmd::infer_layouts(plan.graph, plan.mesh));
  WEFT_TRY(origins, distribute::trace_origins(model, rewritten));
  plan.layouts = std::move(layouts);
  plan.opened = std::move(origins.opened);
  plan.origin = std::move(origins.origin);
  plan.own = std::move(origins.own);
  return plan;
}

}  // namespace

std::string SmallProof::text() const {
  if (proof.wrong) return fmt::format("not the plan of one device: {}", proof.wrong->what);
  if (!proof.unseen.empty()) return fmt::format("not proven: {}, at {}", proof.unseen, sizes);
  return fmt::format(
      "proven equal{}{}{}{} to {}{}, over the field{}, at {}", up_to_rounding(proof),
      up_to_codecs ? " up to codecs (encode and decode treated as the identity)" : "",
      steps_between_averages > 1
          ? fmt::format(" except that ranks average parameters every {} steps instead of summing gradients,",
                        steps_between_averages)
          : "",
      but_for_delay ? " except that gradients are applied one step later" : "",
      rewritten ? "the model before rewriting" : "the plan of one device", but_for_norms(norm_shares),
      in_time ? " as every stage runs it" : " and in f64", sizes);
}

Result<SmallProof> prove_plan(const Knowledge& state, const Prepared& prepared, const plan::Graph& model,
                              const search::Choice& choice) {
  Claim claim{.model = &model, .norm_shares = prepared.norm_shares, .until = choice.until};
  distribute::DistributedPlan rewritten;
  if (choice.rewritten) {
    WEFT_TRY(plan, on_one_rank(model, choice.plan));
    rewritten = std::move(plan);
    claim.rewritten = &rewritten;
  }
  if (choice.spread) claim.spread = &choice.spread->chosen.plan;
  return prove_up_to_codecs(state, prepared, claim);
}

Result<SmallProof> prove_written_plan(const Knowledge& state, const Prepared& prepared,
                                      const distribute::DistributedPlan& written) {
  distribute::DistributedPlan exact, at_once;
  const distribute::DistributedPlan* claimed = &written;
  WEFT_TRY(is_delayed, take_back_delay(claimed, at_once));
  const bool is_coded = distribute::has_codecs(claimed->graph);
  if (is_coded) {
    WEFT_TRY(without, distribute::without_codecs(*claimed));
    exact = std::move(without);
  }
  const distribute::DistributedPlan& plan = is_coded ? exact : *claimed;
  WEFT_TRY(proof, prove_claim(
                      state, prepared,
                      {.model = &prepared.plan.graph, .spread = &plan, .norm_shares = prepared.norm_shares}));
  proof.up_to_codecs = is_coded;
  proof.but_for_delay = is_delayed;
  proof.steps_between_averages = distribute::steps_between_sums(written.graph);
  if (!proof.proof.holds()) return proof;
  WEFT_TRY(open, distribute::decompose_nodes(prepared.plan.graph, plan.opened));
  if (const plan::NodeId untold = distribute::find_changed_integers(open, plan); untold.valid())
    return user_error(fmt::format("the plan could not be proven: node {} uses integers in a way that a proof "
                                  "at small sizes does not cover",
                                  describe(plan.graph, untold)),
                      "write the plan at small sizes: it is then proven at its own sizes");
  return proof;
}

bool is_small(const plan::Graph& graph, const plan::Mesh& mesh) {
  constexpr std::int64_t kMostElements = 1 << 18;
  constexpr std::int32_t kMostSmallRanks = 16;
  if (mesh.ranks() > kMostSmallRanks) return false;
  for (std::size_t v = 0; v < graph.value_count(); ++v)
    if (graph.type(plan::ValueId(v)).elements() > kMostElements) return false;
  return cost::plan_flops(graph) * mesh.ranks() <= kMostFlops;
}

Result<Proof> require_proof(const Knowledge& state, const Prepared& prepared, const plan::Graph& model,
                            const search::Choice& choice) {
  if (!choice.rewritten && !choice.spread) return Proof{true, {}};
  if (!prepared.settings.prove)
    return Proof{
        false, fmt::format("not proven{}: the setting prove is false", but_for_norms(prepared.norm_shares))};
  Hasher hasher;
  hasher.digest_of(plan::structural_hash(model)).digest_of(plan::structural_hash(choice.plan));
  if (choice.spread)
    hasher.digest_of(plan::structural_hash(choice.spread->chosen.plan.graph))
        .text(print(choice.spread->chosen.plan.mesh))
        .text(distribute::print(choice.spread->distribution));
  // The small plans of the proof have their own phases, so those of the real plan are verified
  // here.
  const plan::Graph& found = choice.spread ? choice.spread->chosen.plan.graph : choice.plan;
  for (std::size_t n = 0; n < found.node_count(); ++n)
    if (const Status phases = plan::verify_phases(found, plan::NodeId(n)); !phases.ok())
      return user_error(fmt::format("internal error: the plan found is wrong: node {} {}",
                                    plan::describe(found, plan::NodeId(n)), phases.error().message),
                        "this is a bug in weft: please report it with the statement", prepared.run->span);
  const Digest digest = hasher.digest();
  if (const auto known = state.proven.find(digest); known != state.proven.end())
    return Proof{true, known->second};
  constexpr std::string_view kTooLate = "not proven: out of time; leave out planning_seconds to prove it";
  if (std::chrono::steady_clock::now() >= choice.until) return Proof{false, std::string(kTooLate)};
  const Result<SmallProof> proof = prove_plan(state, prepared, model, choice);
  if (!proof.ok() && std::chrono::steady_clock::now() >= choice.until)
    return Proof{false, std::string(kTooLate)};
  if (!proof.ok()) return Proof{false, "not proven: " + proof.error().message};
  if (!proof->proof.holds())
    return user_error(fmt::format("internal error: the plan found is wrong: {}", proof->proof.wrong->what),
                      "this is a bug in weft: please report it with the statement", prepared.run->span);
  if (!proof->proof.is_proven()) return Proof{false, proof->text()};
  state.proven.emplace(digest, proof->text());
  return Proof{true, proof->text()};
}

}  // namespace weft::planner
