#include "weft/planner/search/pipeline/choose_pipeline.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include <fmt/format.h>

#include "weft/base/parallel_for.h"
#include "weft/base/units.h"
#include "weft/parallel/distribute/index_roles.h"
#include "weft/parallel/pipeline/library.h"
#include "weft/planner/search/optimize.h"
#include "weft/planner/search/pipeline/choose_layers.h"
#include "weft/planner/search/pipeline/cut_unequal.h"
#include "weft/planner/search/pipeline/offload.h"
#include "weft/planner/search/pipeline/schedule_cache.h"
#include "weft/planner/search/pipeline/split_uses.h"
#include "weft/planner/search/pipeline/splits.h"
#include "weft/planner/search/pipeline/stage_devices.h"
#include "weft/planner/search/pipeline/stage_mesh_search.h"
#include "weft/planner/search/pipeline/synthesize_schedule.h"

namespace weft::search {
namespace {

using distribute::AxisUse;
using distribute::Distribution;
using distribute::Shard;
using Names = std::vector<std::string>;

constexpr std::int64_t kMostRows = 8;      // per micro-batch on one replica
constexpr std::int64_t kMostMicro = 4096;  // micro-batches
constexpr std::size_t kMostPriced = 600;   // schedules simulated per call of cheapest()
constexpr std::size_t kFinalists = 3;
constexpr std::size_t kPricedAtOnce = 8;  // independent of the processor count: searches are reproducible
constexpr double kUnlikely = 1.05;  // times the best: uneven stages are never faster, and rarely much slower

struct NamedSchedule {
  std::string_view name;
  std::int32_t chunks;
};
// The schedules worth trying. GPipe, say, needs more memory than 1F1B and has the same bubble.
constexpr NamedSchedule kSchedules[] = {
    {"one_f_one_b", 1},
    {"interleaved_one_f_one_b", 2},
    {"interleaved_one_f_one_b", 3},
    {"interleaved_one_f_one_b", 4},
    {"interleaved_one_f_one_b", 6},
    {"interleaved_one_f_one_b", 12},
    {"zb_h1", 1},
    {"zb_h2", 1},
    {"zb_v", 2},
    {"v_half", 2},
};
bool is_megatron(std::string_view schedule) { return schedule.ends_with("one_f_one_b"); }

// Recomputation policies, by increasing work: none, selective, whole layers.
const train::Recompute kAgain[] = {{}, {.selective = true, .names = {}}, {.layers = true, .names = {}}};
constexpr std::size_t kLayersAgain = 2;  // index in kAgain
// Limit on candidates that recompute chosen layers, for each of the first two policies.
constexpr std::size_t kMostChosen = 12;

struct Candidate {
  std::size_t split = 0, list = 0;
  Shard shard = Shard::nothing;
  std::int64_t rows = 1;  // per micro-batch on one replica
  TimeShape shape = {};
  std::size_t again = 0;     // index in kAgain
  bool some_layers = false;  // also recompute as many layers per stage as its memory requires
  bool offload = false;
  bool megatron = false;
  double likely = 0, least = 0;  // seconds
  std::size_t number = 0;        // in order of discovery
};

class PipelineSearch {
 public:
  explicit PipelineSearch(const PipelineProblem& problem)
      : problem_(problem),
        cluster_(*problem.cluster),
        roles_(distribute::index_roles(*problem.plan)),
        limit_(problem.memory_bytes > 0 ? problem.memory_bytes : std::numeric_limits<double>::infinity()),
        whole_(*problem.plan),
        uses_(problem, roles_),
        watch_(problem.watching) {}

  Result<ChosenPipeline> run() {
    for (const FixedPart::Slice& slice : problem_.fixed.slices) fixed_.push_back(slice.axis);
    for (const distribute::Exception& exception : problem_.fixed.exceptions) fixed_.push_back(exception.axis);
    splits_ = find_splits({.cluster = &cluster_,
                           .parts = static_cast<std::int64_t>(whole_.count()),
                           .cuts_model = !roles_.model.empty(),
                           .fixed = fixed_,
                           .batches = uses_.batch_axes()});
    std::erase_if(splits_, [&](const Split& split) { return shards_for(split).empty(); });
    if (splits_.empty() && !problem_.fixed.degrees.empty())
      return user_error(fmt::format("no plan with stages on {} keeps HINT {}", cluster_.name,
                                    print(problem_.fixed.degrees)),
                        "other degrees, or a distribution in full: SET distribution = '..'");
    simulate(0);
    rank(0, /*offload=*/false);
    std::vector<std::size_t> best = cheapest([](const Candidate&) { return true; });
    if (!problem_.recomputed) best = with_less_memory(std::move(best));
    const std::vector<std::size_t> family = cheapest([](const Candidate& one) { return one.megatron; });
    WEFT_TRY(chosen, finalist(best));
    if (Result<ChosenPipeline> megatron = finalist(family); megatron.ok()) {
      if (better(megatron->priced, chosen.priced)) chosen = *megatron;
      chosen.megatron = static_cast<PipelinePlan&>(*megatron);
    }
    const auto least = std::ranges::min_element(candidates_, {}, &Candidate::least);
    double least_seconds = least == candidates_.end() ? 0 : least->least;
    if (!over())
      if (auto meshes = with_stage_meshes(problem_, chosen, uses_.model_indices())) {
        meshes->megatron = std::move(chosen.megatron);
        least_seconds = std::min(least_seconds, meshes->least_seconds);
        chosen = *std::move(meshes);
      }
    if (!over() && !is_off(kSynthesizeStage))
      if (auto synthesized = with_synthesized_schedule(problem_, chosen)) {
        synthesized->megatron = std::move(chosen.megatron);
        chosen = *std::move(synthesized);
      }
    chosen.candidates = static_cast<std::int64_t>(candidates_.size());
    chosen.simulated = static_cast<std::int64_t>(micro_.size() + ends_.size());
    chosen.priced_events = static_cast<std::int64_t>(priced_.size());
    chosen.least_seconds = least_seconds;
    chosen.ended_early = over();
    chosen.search_seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    if (!chosen.fits) return fits_nowhere(chosen);
    if (chosen.priced.seconds >= problem_.beat_seconds)
      return user_error(
          fmt::format("no plan with stages takes less than {}", print_seconds(problem_.beat_seconds)));
    return chosen;
  }

 private:
  using Clock = std::chrono::steady_clock;

  bool over() const { return watch_.over() || Clock::now() >= problem_.until; }
  static bool better(const PipelineEstimate& a, const PipelineEstimate& b) {
    if (a.fits != b.fits) return a.fits;
    return a.fits ? a.seconds < b.seconds : a.peak_bytes < b.peak_bytes;
  }
  struct Micro {
    Distribution within;
    const PartEstimator* parts;
    Machine machine;
    Result<PartCosts> costs = user_error("the search ended before trying this");
    bool is_done = false;
  };

  // Appends the stage's device kind to a key.
  static std::string with_device(const std::string& key, std::size_t device) {
    return device == 0 ? key : fmt::format("{} on {}", key, device);
  }
  static std::string micro_key(const Split& split, std::size_t list, std::int64_t rows, std::size_t again) {
    return fmt::format("{}: {} {} {}", split.model_text(), list, rows, again);
  }
  static std::string end_key(const Split& split, Shard shard) {
    return fmt::format("{}: {}", split.text(), static_cast<int>(shard));
  }

  std::vector<std::size_t> lists_for(const Split& split) const {
    const bool cuts = std::ranges::any_of(split.axes, [](const Split::Axis& axis) { return axis.model > 1; });
    return cuts && uses_.lists() > 1 ? std::vector<std::size_t>{0, 1} : std::vector<std::size_t>{0};
  }
  std::vector<Shard> shards_for(const Split& split) const {
    std::vector<Shard> shards = {Shard::nothing};
    if (split.data() > 1) shards.push_back(Shard::optimizer);
    std::erase_if(shards, [&](Shard shard) {
      return !keeps(problem_.fixed, cluster_, uses_.distribution_of(split, 0, shard), roles_);
    });
    return shards;
  }
  bool divides(const Split& split, std::int64_t rows) const {
    const std::int64_t at_once = split.data() * rows;
    return at_once <= problem_.rows && problem_.rows % at_once == 0 && problem_.rows / at_once <= kMostMicro;
  }

  const PartEstimator* parts_of(std::int64_t rows, std::size_t again) {
    const auto [found, is_new] = parts_.try_emplace({rows, again});
    if (is_new)
      if (const Result<const plan::Graph*> plan = problem_.plan_of(rows); plan.ok())
        found->second = std::make_unique<PartEstimator>(**plan, kAgain[again]);
    return found->second.get();
  }

  void ask(std::map<std::string, Micro>& questions, const std::string& key, const Distribution& within,
           const plan::Mesh& mesh, const PartEstimator* parts, std::size_t device) {
    if (parts == nullptr || questions.contains(key)) return;
    questions.emplace(key, Micro{on_stage(within), parts, within_mesh(machine_on(device), mesh)});
  }

  // Simulates the micro-batches under recomputation policy `again`. Policies other than the first
  // are tried only for candidates that exceed memory without them and might still be fast enough.
  void simulate(std::size_t again) {
    for (const Split& split : splits_) {
      for (const std::size_t list : lists_for(split)) {
        const Distribution whole = uses_.distribution_of(without_stages(split), list, Shard::nothing);
        for (std::int64_t rows = 1; rows <= kMostRows; rows *= 2)
          if (divides(split, rows) && (again == 0 || short_.contains(micro_key(split, list, rows, 0))))
            for (const std::size_t device : devices_on(split))
              ask(micro_, with_device(micro_key(split, list, rows, again), device), uses_.model_of(whole),
                  whole.mesh, parts_of(rows, again), device);
      }
      if (again > 0) continue;
      for (const Shard shard : shards_for(split)) {
        const Distribution whole = uses_.distribution_of(split, 0, shard);
        for (const std::size_t device : devices_on(split))
          ask(ends_, with_device(end_key(split, shard), device), whole, whole.mesh, &whole_, device);
      }
    }
    std::vector<std::pair<Micro*, bool>> jobs;
    for (auto& [key, one] : micro_)
      if (!one.is_done) jobs.emplace_back(&one, false);
    for (auto& [key, one] : ends_)
      if (!one.is_done) jobs.emplace_back(&one, true);
    parallel_for(jobs.size(), [&](std::size_t j) {
      if (over()) return;
      auto& [one, end] = jobs[j];
      one->is_done = true;
      one->costs = end ? one->parts->end_of_step(one->within, one->machine, /*accumulates=*/true)
                       : one->parts->micro_batch(one->within, one->machine);
    });
  }

  const Machine& machine_on(std::size_t device) const {
    return device == 0 ? *problem_.machine : *problem_.machine_with(devices_[device - 1]);
  }

  // Device kind per stage: 0 is the cluster's own, n is devices_[n - 1]. One entry if all are
  // equal.
  const std::vector<std::size_t>& devices_on(const Split& split) {
    const auto [found, is_new] = on_split_.try_emplace(split.text());
    if (!is_new) return found->second;
    for (const cluster::Device& device :
         devices_of_stages(cluster_, uses_.distribution_of(split, 0, Shard::nothing))) {
      auto known = std::ranges::find(devices_, device.name, &cluster::Device::name);
      if (known == devices_.end()) known = devices_.insert(known, device);
      found->second.push_back(static_cast<std::size_t>(known - devices_.begin()) + 1);
    }
    if (found->second.empty()) found->second.push_back(0);
    return found->second;
  }

  // Micro-batch and end-of-step costs per device kind. No kinds if one could not be planned.
  const StagedCosts& costs_of(const Candidate& one) {
    const Split& split = splits_[one.split];
    const std::string micro = micro_key(split, one.list, one.rows, one.again),
                      end = end_key(split, one.shard);
    const auto [made, is_new] = costs_.try_emplace(micro + "; " + end + (one.offload ? "; offload" : ""));
    if (!is_new) return made->second;
    StagedCosts staged;
    staged.stack = problem_.cluster->stack;
    std::vector<std::size_t> kinds;  // device kinds seen so far
    for (const std::size_t device : devices_on(split)) {
      const auto known = std::ranges::find(kinds, device);
      staged.of_stage.push_back(static_cast<std::size_t>(known - kinds.begin()));
      if (known != kinds.end()) continue;
      const auto a = micro_.find(with_device(micro, device)), b = ends_.find(with_device(end, device));
      if (a == micro_.end() || b == ends_.end() || !a->second.costs.ok() || !b->second.costs.ok())
        return made->second;
      PartCosts costs = *a->second.costs;
      add_end_of_step(costs, *b->second.costs);
      if (one.offload) offload_to_host(costs);
      const cluster::Device* const own = device == 0 ? nullptr : &devices_[device - 1];
      staged.kinds.push_back({std::move(costs), problem_.room_on(own), own ? own->name : std::string()});
      kinds.push_back(device);
    }
    if (kinds.front() == 0) staged.of_stage.clear();
    made->second = std::move(staged);
    return made->second;
  }
  // Memory available per rank, averaged over stages.
  double room_of(const StagedCosts& costs) const {
    if (!costs.is_mixed()) return limit_;
    double room = 0;
    for (const std::size_t kind : costs.of_stage) room += costs.kinds[kind].room;
    return room / static_cast<double>(costs.of_stage.size());
  }

  bool is_megatron_split(const Split& split) const {
    for (std::size_t a = 0; a < split.axes.size(); ++a) {
      if (split.axes[a].stages > 1 && a != 0) return false;
      if (split.axes[a].model > 1 && a + 1 != split.axes.size()) return false;
    }
    return true;
  }

  void rank(std::size_t again, bool offload) {
    for (std::size_t s = 0; s < splits_.size(); ++s)
      for (const std::size_t list : lists_for(splits_[s]))
        for (const Shard shard : shards_for(splits_[s]))
          for (std::int64_t rows = 1; rows <= kMostRows; rows *= 2)
            if (divides(splits_[s], rows))
              add_shapes({.split = s,
                          .list = list,
                          .shard = shard,
                          .rows = rows,
                          .again = again,
                          .offload = offload});
    std::ranges::stable_sort(candidates_, {}, &Candidate::likely);
  }

  // Retries candidates that exceed memory with more recomputation. Recomputation costs time, so
  // only candidates that might beat the best so far are retried. If nothing fits, offloads
  // optimizer states.
  std::vector<std::size_t> with_less_memory(std::vector<std::size_t> best) {
    for (std::size_t again = 1; again < std::size(kAgain) && !short_.empty() && !over(); ++again) {
      const double quickest = seconds_of(best);
      std::erase_if(short_, [&](const auto& one) { return one.second >= quickest; });
      simulate(again);
      rank(again, /*offload=*/false);
      best = cheapest([](const Candidate&) { return true; });
    }
    if (!is_off(kRecomputeStage) && !over()) {
      const std::optional<std::size_t> before =
          best.empty() ? std::nullopt : std::optional(candidates_[best.front()].number);
      if (add_some_layers(seconds_of(best))) best = cheapest([](const Candidate&) { return true; });
      // The estimate for chosen layers is less accurate, so the best plan without them stays a
      // finalist too.
      if (before && !best.empty() && candidates_[best.front()].some_layers) {
        const auto same = std::ranges::find(candidates_, *before, &Candidate::number);
        best = {best.front(), static_cast<std::size_t>(same - candidates_.begin())};
      }
    }
    if (has_to_beat() || seconds_of(best) < std::numeric_limits<double>::infinity()) return best;
    for (std::size_t again = 0; again < std::size(kAgain) && !over(); ++again) {
      simulate(again);
      rank(again, /*offload=*/true);
    }
    return cheapest([](const Candidate&) { return true; });
  }
  bool has_to_beat() const { return problem_.beat_seconds < std::numeric_limits<double>::infinity(); }
  double seconds_of(const std::vector<std::size_t>& best) {
    double seconds = problem_.beat_seconds;
    for (const std::size_t c : best)
      if (const PipelineEstimate* const price = priced(c); price != nullptr && price->fits)
        seconds = std::min(seconds, price->seconds);
    return seconds;
  }

  bool is_off(std::string_view stage) const {
    return std::ranges::find(problem_.off, stage) != problem_.off.end();
  }

  // Adds candidates between two policies of kAgain, which recompute only some layers. Keeps the
  // most promising of those that may take less than `quickest` seconds. Whether it added any.
  bool add_some_layers(double quickest) {
    const std::size_t before = candidates_.size();
    for (std::size_t again = 0; again < kLayersAgain; ++again) {
      std::vector<Candidate> found;
      for (std::size_t s = 0; s < splits_.size(); ++s)
        for (const std::size_t list : lists_for(splits_[s]))
          for (const Shard shard : shards_for(splits_[s]))
            for (std::int64_t rows = 1; rows <= kMostRows; rows *= 2)
              if (divides(splits_[s], rows) && short_.contains(micro_key(splits_[s], list, rows, 0)))
                find_some_layers({.split = s,
                                  .list = list,
                                  .shard = shard,
                                  .rows = rows,
                                  .again = again,
                                  .some_layers = true},
                                 quickest, found);
      std::ranges::stable_sort(found, {}, &Candidate::likely);
      found.resize(std::min(found.size(), kMostChosen));
      for (Candidate& one : found) {
        one.number = candidates_.size();
        candidates_.push_back(one);
      }
    }
    std::ranges::stable_sort(candidates_, {}, &Candidate::likely);
    return candidates_.size() > before;
  }

  void find_some_layers(Candidate one, double quickest, std::vector<Candidate>& found) {
    const StagedCosts& few = costs_of(one);
    Candidate most = one;
    most.again = kLayersAgain;
    const StagedCosts& all = costs_of(most);
    if (few.kinds.empty() || all.kinds.empty() || few.is_mixed()) return;
    const PartCosts &kept = few.kinds.front().costs, &again = all.kinds.front().costs;
    const double room = room_of(few);
    const Split& split = splits_[one.split];
    const auto stages = static_cast<std::int32_t>(split.stages());
    const auto held = [](const PartCosts& costs, const TimeShape& shape) {
      return std::max(least_bytes(costs, shape), held_bytes(costs, shape));
    };
    for (const NamedSchedule& named : kSchedules) {
      if (stages == 1 && named.name != "one_f_one_b") continue;
      if (static_cast<std::size_t>(stages) * static_cast<std::size_t>(named.chunks) > kept.size()) continue;
      const Result<const pipeline::ScheduleText*> text = pipeline::find_schedule(named.name);
      if (!text.ok() || (stages > 1 && splits_weight_passes(**text))) continue;
      one.shape = {stages, named.chunks, problem_.rows / (split.data() * one.rows), *text};
      if (stages == 1 && one.shape.micro_batches == 1) continue;
      const double with_few = held(kept, one.shape), with_all = held(again, one.shape);
      if (least_bytes(again, one.shape) > room || with_few <= with_all) continue;
      // The extra work is proportional to the bytes that must be freed.
      const double share = std::clamp((with_few - room) / (with_few - with_all), 0.0, 1.0);
      const double as_kept = likely_seconds(few, one.shape);
      one.likely = as_kept + share * (likely_seconds(all, one.shape) - as_kept);
      one.least = least_seconds(few, one.shape);
      if (one.likely >= quickest || one.least >= quickest) continue;
      one.megatron = stages > 1 && is_megatron(named.name) && is_megatron_split(split);
      found.push_back(one);
    }
  }

  void add_shapes(Candidate one) {
    const StagedCosts& staged = costs_of(one);
    if (staged.kinds.empty()) return;
    const PartCosts& costs = staged.kinds.front().costs;
    const Split& split = splits_[one.split];
    const auto stages = static_cast<std::int32_t>(split.stages());
    for (const NamedSchedule& named : kSchedules) {
      if (stages == 1 && named.name != "one_f_one_b") continue;
      if (static_cast<std::size_t>(stages) * static_cast<std::size_t>(named.chunks) > costs.size()) continue;
      const Result<const pipeline::ScheduleText*> text = pipeline::find_schedule(named.name);
      if (!text.ok()) continue;
      one.shape = {stages, named.chunks, problem_.rows / (split.data() * one.rows), *text};
      if (stages == 1 && one.shape.micro_batches == 1) continue;  // not a pipeline plan
      // With split B and W, activations recomputed for B would have to be kept until W.
      if (one.again > 0 && stages > 1 && splits_weight_passes(**text)) continue;
      one.likely = likely_seconds(staged, one.shape);
      if (std::max(least_bytes(costs, one.shape), held_bytes(costs, one.shape)) > room_of(staged)) {
        if (one.again == 0) note_short(one);
        continue;
      }
      one.least = least_seconds(staged, one.shape);
      one.megatron = stages > 1 && is_megatron(named.name) && is_megatron_split(split);
      one.number = candidates_.size();
      candidates_.push_back(one);
    }
  }

  // Records, per micro-batch, the least time among candidates that exceed memory.
  void note_short(const Candidate& one) {
    const auto [found, is_new] =
        short_.try_emplace(micro_key(splits_[one.split], one.list, one.rows, 0), one.likely);
    if (!is_new) found->second = std::min(found->second, one.likely);
  }

  const PipelineEstimate* priced(std::size_t c) {
    price_all({&c, 1});
    const std::optional<PipelineEstimate>& found = priced_[candidates_[c].number];
    return found ? &*found : nullptr;
  }

  // Estimates in parallel the candidates that have no estimate yet.
  void price_all(std::span<const std::size_t> candidates) {
    struct Question {
      const Candidate* one;
      std::optional<PipelineEstimate>* answer;
      std::shared_ptr<const Unfolded> order = nullptr;
      const StagedCosts* costs = nullptr;
      const std::vector<std::size_t>* cuts = nullptr;
      // For candidates with some_layers only.
      const StagedCosts* all_layers = nullptr;
      const PartEstimator* parts = nullptr;
    };
    std::vector<Question> questions;
    for (const std::size_t c : candidates)
      if (const auto [found, is_new] = priced_.try_emplace(candidates_[c].number); is_new)
        questions.push_back({&candidates_[c], &found->second});
    parallel_for(questions.size(),
                 [&](std::size_t q) { questions[q].order = shapes_.at(questions[q].one->shape); });
    std::erase_if(questions, [](const Question& question) { return question.order == nullptr; });
    for (Question& question : questions) {
      const Candidate& one = *question.one;
      question.costs = &costs_of(one);
      if (one.some_layers) {
        Candidate most = one;
        most.again = kLayersAgain;
        question.all_layers = &costs_of(most);
        question.parts = parts_of(one.rows, one.again);
        continue;
      }
      const auto positions = static_cast<std::size_t>(question.order->schedule.positions());
      std::string key =
          micro_key(splits_[one.split], one.list, one.rows, one.again) + fmt::format("; {}", positions);
      // If memory differs between stages, the cut also depends on the schedule and on sharding.
      const bool mixed = question.costs->is_mixed();
      if (mixed)
        key += fmt::format("; {} {} {}", end_key(splits_[one.split], one.shard), one.shape.schedule->name,
                           one.offload);
      auto cuts = cuts_.find(key);
      if (cuts == cuts_.end())
        cuts = cuts_
                   .emplace(key, mixed || stack_cuts(*question.costs, *question.order)
                                     ? cut_unequal(*question.costs, *question.order)
                                     : cut_parts(question.costs->kinds.front().costs, positions))
                   .first;
      question.cuts = &cuts->second;
    }
    parallel_for(questions.size(), [&](std::size_t q) {
      const Question& question = questions[q];
      const cost::MeshLink link = link_of(splits_[question.one->split]);
      if (question.one->some_layers) {
        *question.answer = with_some_layers(*question.one, *question.order, *question.costs,
                                            *question.all_layers, *question.parts, link);
        return;
      }
      Result<PipelineEstimate> price =
          estimate_pipeline(*question.costs, *question.order, *question.cuts, link, Detail::sums);
      if (!price.ok()) return;
      // A cut balanced by time alone may exceed memory where another one fits.
      if (!price->fits)
        if (const auto cuts = cut_within_room(*question.costs, *question.order))
          if (auto other = estimate_pipeline(*question.costs, *question.order, *cuts, link, Detail::sums);
              other.ok() && other->fits)
            price = std::move(other);
      *question.answer = std::move(*price);
    });
  }

  std::optional<PipelineEstimate> with_some_layers(const Candidate& one, const Unfolded& order,
                                                   const StagedCosts& few, const StagedCosts& all,
                                                   const PartEstimator& parts, const cost::MeshLink& link) {
    auto chosen =
        choose_layers(few.kinds.front().costs, all.kinds.front().costs, parts.layer_names(), order, limit_);
    if (!chosen) return std::nullopt;
    StagedCosts costs = few;
    costs.kinds.front().costs = std::move(chosen->costs);
    Result<PipelineEstimate> price =
        estimate_pipeline(costs, order, cut_unequal(costs, order), link, Detail::sums);
    if (auto other = estimate_pipeline(costs, order, chosen->cuts, link, Detail::sums);
        other.ok() && (!price.ok() || better(*other, *price)))
      price = std::move(other);
    if (!price.ok()) return std::nullopt;
    const std::scoped_lock lock(layers_mutex_);
    layers_[one.number] = std::move(chosen->layers);
    return *std::move(price);
  }

  cost::MeshLink link_of(const Split& split) const {
    const Distribution made = uses_.distribution_of(split, 0, Shard::nothing);
    const auto axis = distribute::stage_axis(made);
    const auto links = cost::mesh_links(cluster_, made.mesh);
    return axis && links.ok() ? (*links)[*axis] : cost::MeshLink();
  }

  // The best few candidates of a family. REQUIRES: candidates_ is sorted by likely seconds.
  template <class Belongs>
  std::vector<std::size_t> cheapest(const Belongs& belongs) {
    std::vector<std::pair<double, std::size_t>> found;
    double best = problem_.beat_seconds;
    const std::size_t most = priced_.size() + kMostPriced;
    std::pair<double, std::size_t> smallest = {std::numeric_limits<double>::infinity(), 0};
    for (std::size_t next = 0; next < candidates_.size();) {
      std::vector<std::size_t> some;
      for (; next < candidates_.size() && some.size() < kPricedAtOnce; ++next) {
        const Candidate& one = candidates_[next];
        if (!belongs(one)) continue;
        if (one.likely >= kUnlikely * best || priced_.size() + some.size() >= most)
          next = candidates_.size();
        else if (one.least < best)
          some.push_back(next);
      }
      if (some.empty() || (!found.empty() && over())) break;
      price_all(some);
      for (const std::size_t c : some) {
        const PipelineEstimate* const price = priced(c);
        if (price == nullptr) continue;
        smallest = std::min(smallest, {price->peak_bytes, c});
        if (!price->fits) {
          if (candidates_[c].again == 0) note_short(candidates_[c]);
          continue;
        }
        if (price->seconds >= problem_.beat_seconds) continue;
        best = std::min(best, price->seconds);
        watch_.see(static_cast<std::int64_t>(priced_.size()), best);
        found.emplace_back(price->seconds, c);
      }
    }
    std::ranges::sort(found);
    std::vector<std::size_t> kept;
    for (const auto& [seconds, c] : found)
      if (kept.size() < kFinalists) kept.push_back(c);
    if (kept.empty() && !has_to_beat() && smallest.first < std::numeric_limits<double>::infinity())
      kept.push_back(smallest.second);
    return kept;
  }

  // Estimates finalists with their own rows and mesh, and takes the first that fits.
  Result<ChosenPipeline> finalist(const std::vector<std::size_t>& candidates) {
    std::optional<ChosenPipeline> best;
    Error last = nothing_looked_at();
    for (const std::size_t c : candidates) {
      const Candidate& one = candidates_[c];
      Distribution made = uses_.distribution_of(splits_[one.split], one.list, one.shard);
      if (const auto axis = distribute::stage_axis(made)) {
        made.axes[*axis].chunks = one.shape.chunks;
        made.schedule = one.shape.schedule->name;
      }
      made.micro_batches = one.shape.micro_batches;
      if (!problem_.recomputed) made.recompute = kAgain[one.again];
      if (one.some_layers) made.recompute.names = layers_.at(one.number);
      if (problem_.recomputed) made.recompute = *problem_.recomputed;
      made.offload = one.offload;
      Result<ChosenPipeline> exact = estimate_given(problem_, made);
      if (!exact.ok()) {
        last = std::move(exact).error();
        continue;
      }
      if (!best || better(exact->priced, best->priced)) best = std::move(*exact);
      if (best->fits && !one.some_layers) break;
    }
    if (!best) return last;
    return *std::move(best);
  }

  Error nothing_looked_at() const {
    for (const auto* questions : {&micro_, &ends_})
      for (const auto& [key, one] : *questions)
        if (!one.costs.ok()) return one.costs.error();
    return user_error("the search tried no plan with stages");
  }

  Error fits_nowhere(const ChosenPipeline& smallest) const {
    return user_error(
        fmt::format("no plan with stages fits in {} per rank; the smallest found needs {} on stage {} ({})",
                    print_bytes(limit_), print_bytes(smallest.priced.peak_bytes), smallest.priced.fullest,
                    print(smallest.distribution)));
  }

  const PipelineProblem& problem_;
  const cluster::Cluster& cluster_;
  const Clock::time_point began_ = Clock::now();
  distribute::IndexRoles roles_;
  double limit_;
  PartEstimator whole_;
  SplitUses uses_;
  mutable SearchWatch watch_;
  Names fixed_;  // axes that hints constrain
  std::vector<Split> splits_;
  std::map<std::pair<std::int64_t, std::size_t>, std::unique_ptr<PartEstimator>>
      parts_;                            // by rows and recomputation policy
  std::map<std::string, double> short_;  // micro-batches that exceed memory: their least seconds
  std::map<std::string, Micro> micro_, ends_;
  std::vector<cluster::Device> devices_;  // of stages, in a mixed cluster
  std::map<std::string, std::vector<std::size_t>> on_split_;
  std::map<std::string, StagedCosts> costs_;
  ScheduleCache shapes_;
  std::map<std::string, std::vector<std::size_t>> cuts_;
  std::vector<Candidate> candidates_;
  std::map<std::size_t, std::optional<PipelineEstimate>> priced_;  // by number
  std::mutex layers_mutex_;
  std::map<std::size_t, std::vector<std::string>> layers_;  // by number: layers to recompute
};

}  // namespace

Result<ChosenPipeline> choose_pipeline(const PipelineProblem& problem) {
  return PipelineSearch(problem).run();
}

}  // namespace weft::search
