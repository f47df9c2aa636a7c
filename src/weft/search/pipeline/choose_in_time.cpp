#include "weft/search/pipeline/choose_in_time.h"

#include <algorithm>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "weft/base/do_all.h"
#include "weft/base/units.h"
#include "weft/distribute/index_roles.h"
#include "weft/pipeline/library.h"
#include "weft/search/pipeline/offload.h"
#include "weft/search/pipeline/splits.h"

namespace weft::search {
namespace {

using distribute::AxisUse;
using distribute::Distribution;
using distribute::Shard;
using Names = std::vector<std::string>;

constexpr std::int64_t kMostRows = 8;      // of a micro-batch on one replica
constexpr std::int64_t kMostMicro = 4096;  // micro-batches
constexpr std::size_t kMostPriced = 600;   // schedules
constexpr std::size_t kFinalists = 3;
constexpr double kUnlikely = 1.05;  // times the best: unequal parts make no step quicker, and few much slower

struct NamedSchedule {
  std::string_view name;
  std::int32_t chunks;
};
// Those that pay: GPipe holds more than 1F1B and waits as long, and so on.
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

// What a plan does again, in the order of the work that it takes.
const train::Recompute kAgain[] = {{}, {.selective = true}, {.layers = true}};

struct Candidate {
  std::size_t split = 0, list = 0;
  Shard shard = Shard::nothing;
  std::int64_t rows = 1;  // of a micro-batch on a replica
  TimeShape shape;
  std::size_t again = 0;  // of kAgain
  bool offload = false;
  bool megatron = false;
  double likely = 0, least = 0;  // seconds
  std::size_t number = 0;        // in the order they were found
};

Names joined_names(Names a, const Names& b) {
  for (const std::string& index : b)
    if (std::ranges::find(a, index) == a.end()) a.push_back(index);
  return a;
}

class InTimeSearch {
 public:
  explicit InTimeSearch(const InTimeProblem& problem)
      : problem_(problem),
        cluster_(*problem.cluster),
        roles_(distribute::index_roles(*problem.plan)),
        limit_(problem.memory_bytes > 0 ? problem.memory_bytes : std::numeric_limits<double>::infinity()),
        whole_(*problem.plan) {
    lists_.push_back(joined_names(roles_.model, roles_.sequence));
    if (!roles_.sequence.empty() && !roles_.model.empty()) lists_.push_back(roles_.model);
  }

  Result<ChosenInTime> run() {
    for (const FixedPart::Slice& slice : problem_.fixed.slices) fixed_.push_back(slice.axis);
    for (const distribute::Exception& exception : problem_.fixed.exceptions) fixed_.push_back(exception.axis);
    splits_ = find_splits({.cluster = &cluster_,
                           .parts = static_cast<std::int64_t>(whole_.count()),
                           .cuts_model = !roles_.model.empty(),
                           .fixed = fixed_,
                           .batches = batch_axes()});
    simulate(0);
    rank(0, /*offload=*/false);
    std::vector<std::size_t> best = cheapest([](const Candidate&) { return true; });
    if (!problem_.recomputed) best = with_less_memory(std::move(best));
    const std::vector<std::size_t> family = cheapest([](const Candidate& one) { return one.megatron; });
    WEFT_TRY(chosen, finalist(best));
    if (Result<ChosenInTime> megatron = finalist(family); megatron.ok()) {
      if (better(*megatron, chosen)) chosen = *megatron;
      chosen.megatron = static_cast<PlanInTime&>(*megatron);
    }
    chosen.candidates = static_cast<std::int64_t>(candidates_.size());
    chosen.simulated = static_cast<std::int64_t>(micro_.size() + ends_.size());
    chosen.priced_events = static_cast<std::int64_t>(priced_.size());
    const auto least = std::ranges::min_element(candidates_, {}, &Candidate::least);
    chosen.least_seconds = least == candidates_.end() ? 0 : least->least;
    chosen.ended_early = over();
    chosen.search_seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    if (!chosen.fits) return fits_nowhere(chosen);
    return chosen;
  }

 private:
  using Clock = std::chrono::steady_clock;

  bool over() const {
    return Clock::now() >= problem_.until ||
           (problem_.watching.interrupted && problem_.watching.interrupted());
  }
  static bool better(const PlanInTime& a, const PlanInTime& b) {
    if (a.fits != b.fits) return a.fits;
    return a.fits ? a.priced.seconds < b.priced.seconds : a.priced.peak_bytes < b.priced.peak_bytes;
  }
  // What hints slice on an axis is sliced first there.
  Names hinted(const std::string& axis) const {
    Names list;
    for (const FixedPart::Slice& slice : problem_.fixed.slices)
      if (slice.axis == axis) list.push_back(slice.index);
    return list;
  }
  // Axes on which hints slice the batch.
  Names batch_axes() const {
    Names axes;
    for (const cluster::Axis& axis : cluster_.axes)
      if (const Names list = hinted(axis.name); !list.empty() && list.front() == problem_.batch)
        axes.push_back(axis.name);
    return axes;
  }

  // One mesh axis for each factor of a cluster axis that has ranks.
  Distribution distribution_of(const Split& split, std::size_t list, Shard shard) const {
    Distribution made;
    for (std::size_t a = 0; a < split.axes.size(); ++a) {
      const Split::Axis& axis = split.axes[a];
      const std::string& name = cluster_.axes[a].name;
      const std::int64_t sizes[] = {axis.stages, axis.data, axis.model};
      const AxisUse uses[] = {{.slice = {}, .stage = true},
                              {joined_names(hinted(name), {problem_.batch}), shard},
                              {joined_names(hinted(name), lists_[list]), Shard::nothing}};
      const auto factors = std::ranges::count_if(sizes, [](std::int64_t size) { return size > 1; });
      char letter = 'a';
      for (std::size_t f = 0; f < 3; ++f) {
        if (sizes[f] == 1) continue;
        made.mesh.axes.push_back(
            {factors > 1 ? fmt::format("{}_{}", name, letter++) : name, static_cast<std::int32_t>(sizes[f])});
        made.axes.push_back(uses[f]);
      }
    }
    made.exceptions = problem_.fixed.exceptions;
    return made;
  }
  // The same devices for batches and the model alone, whatever the stages are.
  static Split without_stages(Split split) {
    for (Split::Axis& axis : split.axes) axis = {1, axis.stages * axis.data, axis.model};
    return split;
  }
  // Its axes that cut the model: what one replica is.
  Distribution model_of(const Distribution& whole) const {
    Distribution made;
    for (std::size_t a = 0; a < whole.axes.size(); ++a) {
      const std::vector<std::string>& slice = whole.axes[a].slice;
      if (!slice.empty() && slice.front() == problem_.batch) continue;
      made.mesh.axes.push_back(whole.mesh.axes[a]);
      made.axes.push_back(whole.axes[a]);
    }
    made.exceptions = whole.exceptions;
    return made;
  }

  struct Micro {
    Distribution within;
    const PricedParts* parts;
    Machine machine;
    Result<PartCosts> costs = user_error("the search ended before this was looked at");
    bool is_done = false;
  };

  static std::string micro_key(const Split& split, std::size_t list, std::int64_t rows, std::size_t again) {
    return fmt::format("{}: {} {} {}", split.model_text(), list, rows, again);
  }
  static std::string end_key(const Split& split, Shard shard) {
    return fmt::format("{}: {}", split.text(), static_cast<int>(shard));
  }

  std::vector<std::size_t> lists_for(const Split& split) const {
    const bool cuts = std::ranges::any_of(split.axes, [](const Split::Axis& axis) { return axis.model > 1; });
    return cuts && lists_.size() > 1 ? std::vector<std::size_t>{0, 1} : std::vector<std::size_t>{0};
  }
  std::vector<Shard> shards_for(const Split& split) const {
    if (split.data() == 1) return {Shard::nothing};
    return {Shard::nothing, Shard::optimizer};
  }
  bool divides(const Split& split, std::int64_t rows) const {
    const std::int64_t at_once = split.data() * rows;
    return at_once <= problem_.rows && problem_.rows % at_once == 0 && problem_.rows / at_once <= kMostMicro;
  }

  const PricedParts* parts_of(std::int64_t rows, std::size_t again) {
    const auto [found, is_new] = parts_.try_emplace({rows, again});
    if (is_new)
      if (const Result<const plan::Graph*> plan = problem_.plan_of(rows); plan.ok())
        found->second = std::make_unique<PricedParts>(**plan, kAgain[again]);
    return found->second.get();
  }

  void ask(std::map<std::string, Micro>& questions, const std::string& key, const Distribution& within,
           const plan::Mesh& mesh, const PricedParts* parts) {
    if (parts == nullptr || questions.contains(key)) return;
    questions.emplace(key, Micro{on_stage(within), parts, within_mesh(*problem_.machine, mesh)});
  }

  // The micro-batches of plans that do so much again; but where another than the first is asked for, of those that
  // are short of memory without, and might be quick enough.
  void simulate(std::size_t again) {
    for (const Split& split : splits_) {
      for (const std::size_t list : lists_for(split)) {
        const Distribution whole = distribution_of(without_stages(split), list, Shard::nothing);
        for (std::int64_t rows = 1; rows <= kMostRows; rows *= 2)
          if (divides(split, rows) && (again == 0 || short_.contains(micro_key(split, list, rows, 0))))
            ask(micro_, micro_key(split, list, rows, again), model_of(whole), whole.mesh,
                parts_of(rows, again));
      }
      if (again > 0) continue;
      for (const Shard shard : shards_for(split)) {
        const Distribution whole = distribution_of(split, 0, shard);
        ask(ends_, end_key(split, shard), whole, whole.mesh, &whole_);
      }
    }
    std::vector<std::pair<Micro*, bool>> jobs;
    for (auto& [key, one] : micro_)
      if (!one.is_done) jobs.emplace_back(&one, false);
    for (auto& [key, one] : ends_)
      if (!one.is_done) jobs.emplace_back(&one, true);
    do_all(jobs.size(), [&](std::size_t j) {
      if (over()) return;
      auto& [one, end] = jobs[j];
      one->is_done = true;
      one->costs = end ? one->parts->end_of_step(one->within, one->machine, /*accumulates=*/true)
                       : one->parts->micro_batch(one->within, one->machine);
    });
  }

  // Both halves together; empty where one of them could not be planned.
  const PartCosts& costs_of(const Candidate& one) {
    const Split& split = splits_[one.split];
    const std::string micro = micro_key(split, one.list, one.rows, one.again),
                      end = end_key(split, one.shard);
    const auto [made, is_new] = costs_.try_emplace(micro + "; " + end + (one.offload ? "; offload" : ""));
    if (!is_new) return made->second;
    const auto a = micro_.find(micro), b = ends_.find(end);
    if (a == micro_.end() || b == ends_.end() || !a->second.costs.ok() || !b->second.costs.ok())
      return made->second;
    made->second = *a->second.costs;
    for (std::size_t p = 0; p < made->second.size(); ++p) {
      PartCost& cost = made->second[p];
      const PartCost& at_end = (*b->second.costs)[p];
      cost.update = at_end.update;
      cost.reducing = at_end.reducing;
      cost.parameters = at_end.parameters;
      cost.gradients = at_end.gradients;
      cost.optimizer = at_end.optimizer;
      cost.tied = at_end.tied;
    }
    if (one.offload) send_to_host(made->second);
    return made->second;
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
              add_shapes({s, list, shard, rows, {}, again, offload, false, 0, 0});
    std::ranges::stable_sort(candidates_, {}, &Candidate::likely);
  }

  // What is short of memory is looked at once more, with more of it done again: that takes more time, so only what
  // might be quicker than the best so far. Where nothing fits, the optimizer's states go to the host.
  std::vector<std::size_t> with_less_memory(std::vector<std::size_t> best) {
    for (std::size_t again = 1; again < std::size(kAgain) && !short_.empty() && !over(); ++again) {
      const double quickest = seconds_of(best);
      std::erase_if(short_, [&](const auto& one) { return one.second >= quickest; });
      simulate(again);
      rank(again, /*offload=*/false);
      best = cheapest([](const Candidate&) { return true; });
    }
    if (seconds_of(best) < std::numeric_limits<double>::infinity()) return best;
    for (std::size_t again = 0; again < std::size(kAgain) && !over(); ++again) {
      simulate(again);
      rank(again, /*offload=*/true);
    }
    return cheapest([](const Candidate&) { return true; });
  }
  double seconds_of(const std::vector<std::size_t>& best) {
    double seconds = std::numeric_limits<double>::infinity();
    for (const std::size_t c : best)
      if (const PricedInTime* const price = priced(c); price != nullptr && price->peak_bytes <= limit_)
        seconds = std::min(seconds, price->seconds);
    return seconds;
  }

  void add_shapes(Candidate one) {
    const PartCosts& costs = costs_of(one);
    if (costs.empty()) return;
    const Split& split = splits_[one.split];
    const auto stages = static_cast<std::int32_t>(split.stages());
    for (const NamedSchedule& named : kSchedules) {
      if (stages == 1 && named.name != "one_f_one_b") continue;
      if (static_cast<std::size_t>(stages) * static_cast<std::size_t>(named.chunks) > costs.size()) continue;
      const Result<const pipeline::ScheduleText*> text = pipeline::find_schedule(named.name);
      if (!text.ok()) continue;
      one.shape = {stages, named.chunks, problem_.rows / (split.data() * one.rows), *text};
      if (stages == 1 && one.shape.micro_batches == 1) continue;  // not in time
      // What is done again for a B would wait for its W.
      if (one.again > 0 && stages > 1 && parts_w(**text)) continue;
      one.likely = likely_seconds(costs, one.shape);
      if (least_bytes(costs, one.shape) > limit_ || holds_too_much(costs, one.shape)) {
        if (one.again == 0) note_short(one);
        continue;
      }
      one.least = least_seconds(costs, one.shape);
      one.megatron = stages > 1 && is_megatron(named.name) && is_megatron_split(split);
      one.number = candidates_.size();
      candidates_.push_back(one);
    }
  }

  // The least time of those that would take it, by their micro-batch.
  void note_short(const Candidate& one) {
    const auto [found, is_new] =
        short_.try_emplace(micro_key(splits_[one.split], one.list, one.rows, 0), one.likely);
    if (!is_new) found->second = std::min(found->second, one.likely);
  }

  // By what the schedule states of itself, with stages alike.
  bool holds_too_much(const PartCosts& costs, const TimeShape& shape) const {
    std::map<std::string, double> parameters = {{"stages", shape.stages},
                                                {"micro_batches", static_cast<double>(shape.micro_batches)}};
    if (shape.chunks > 1) parameters["chunks"] = shape.chunks;
    const auto claimed = pipeline::claims(*shape.schedule, parameters, 1, 1, 1);
    if (!claimed.ok() || !claimed->hold || claimed->peak.empty()) return false;
    double persistent = 0, kept = 0;
    for (const PartCost& cost : costs) {
      persistent += cost.parameters + cost.gradients + cost.optimizer;
      kept += cost.kept;
    }
    constexpr double kUnequal = 1.1;  // stages are cut by time, and may hold less than their share
    double least = std::numeric_limits<double>::infinity();
    for (const double peak : claimed->peak) least = std::min(least, persistent + peak * kept);
    const double most = persistent + *std::ranges::max_element(claimed->peak) * kept;
    return std::max(least, most / kUnequal) / shape.stages > limit_;
  }

  const PricedInTime* priced(std::size_t c) {
    const Candidate& one = candidates_[c];
    const auto [found, is_new] = priced_.try_emplace(one.number);
    if (!is_new) return found->second ? &*found->second : nullptr;
    const PartCosts& costs = costs_of(one);
    Result<pipeline::Schedule> schedule = unfold(one.shape);
    if (!schedule.ok()) return nullptr;
    const auto positions = static_cast<std::size_t>(schedule->positions());
    const std::string key =
        micro_key(splits_[one.split], one.list, one.rows, one.again) + fmt::format("; {}", positions);
    auto cuts = cuts_.find(key);
    if (cuts == cuts_.end()) cuts = cuts_.emplace(key, cut_parts(costs, positions)).first;
    Result<PricedInTime> price =
        price_in_time(costs, std::move(*schedule), cuts->second, link_of(splits_[one.split]));
    if (!price.ok()) return nullptr;
    // What a timeline needs is not kept of hundreds.
    price->price.slots.clear();
    price->schedule.orders.clear();
    found->second = std::move(*price);
    return &*found->second;
  }

  cost::MeshLink link_of(const Split& split) const {
    const Distribution made = distribution_of(split, 0, Shard::nothing);
    const auto axis = distribute::stage_axis(made);
    const auto links = cost::mesh_links(cluster_, made.mesh);
    return axis && links.ok() ? (*links)[*axis] : cost::MeshLink();
  }

  // The best few of a family, each on another mesh; candidates come with the least first.
  template <class Belongs>
  std::vector<std::size_t> cheapest(const Belongs& belongs) {
    std::vector<std::pair<double, std::size_t>> found;
    double best = std::numeric_limits<double>::infinity();
    const std::size_t most = priced_.size() + kMostPriced;
    std::pair<double, std::size_t> smallest = {std::numeric_limits<double>::infinity(), 0};
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      if (!belongs(candidates_[c])) continue;
      if (candidates_[c].likely >= kUnlikely * best || priced_.size() >= most) break;
      if (candidates_[c].least >= best) continue;
      if (!found.empty() && over()) break;
      const PricedInTime* const price = priced(c);
      if (price == nullptr) continue;
      smallest = std::min(smallest, {price->peak_bytes, c});
      if (price->peak_bytes > limit_) {
        if (candidates_[c].again == 0) note_short(candidates_[c]);
        continue;
      }
      best = std::min(best, price->seconds);
      found.emplace_back(price->seconds, c);
    }
    std::ranges::sort(found);
    std::vector<std::size_t> kept;
    for (const auto& [seconds, c] : found)
      if (kept.size() < kFinalists) kept.push_back(c);
    if (kept.empty() && smallest.first < std::numeric_limits<double>::infinity())
      kept.push_back(smallest.second);
    return kept;
  }

  // At its own rows and on its own mesh; the first that fits is taken, as estimates hardly differ.
  Result<ChosenInTime> finalist(const std::vector<std::size_t>& candidates) {
    std::optional<ChosenInTime> best;
    Error last = nothing_looked_at();
    for (const std::size_t c : candidates) {
      const Candidate& one = candidates_[c];
      Distribution made = distribution_of(splits_[one.split], one.list, one.shard);
      if (const auto axis = distribute::stage_axis(made)) {
        made.axes[*axis].chunks = one.shape.chunks;
        made.schedule = one.shape.schedule->name;
      }
      made.micro_batches = one.shape.micro_batches;
      if (!problem_.recomputed) made.recompute = kAgain[one.again];
      if (problem_.recomputed) made.recompute = *problem_.recomputed;
      made.offload = one.offload;
      Result<ChosenInTime> exact = price_given(problem_, made);
      if (!exact.ok()) {
        last = std::move(exact).error();
        continue;
      }
      if (!best || better(*exact, *best)) best = std::move(*exact);
      if (best->fits) break;
    }
    if (!best) return last;
    return *std::move(best);
  }

  Error nothing_looked_at() const {
    for (const auto* questions : {&micro_, &ends_})
      for (const auto& [key, one] : *questions)
        if (!one.costs.ok()) return one.costs.error();
    return user_error("no plan in stages was looked at");
  }

  Error fits_nowhere(const ChosenInTime& smallest) const {
    return user_error(
        fmt::format("no plan in stages fits in {} a rank: the smallest found takes {} on stage {} ({})",
                    print_bytes(limit_), print_bytes(smallest.priced.peak_bytes), smallest.priced.fullest,
                    print(smallest.distribution)));
  }

  const InTimeProblem& problem_;
  const cluster::Cluster& cluster_;
  const Clock::time_point began_ = Clock::now();
  distribute::IndexRoles roles_;
  double limit_;
  PricedParts whole_;
  std::vector<Names> lists_;
  Names fixed_;  // axes that hints speak of
  std::vector<Split> splits_;
  std::map<std::pair<std::int64_t, std::size_t>, std::unique_ptr<PricedParts>>
      parts_;                            // by rows and what is again
  std::map<std::string, double> short_;  // by micro-batch: short of memory, and the least seconds
  std::map<std::string, Micro> micro_, ends_;
  std::map<std::string, PartCosts> costs_;
  std::map<std::string, std::vector<std::size_t>> cuts_;
  std::vector<Candidate> candidates_;
  std::map<std::size_t, std::optional<PricedInTime>> priced_;  // by number
};

}  // namespace

Result<ChosenInTime> choose_in_time(const InTimeProblem& problem) { return InTimeSearch(problem).run(); }

}  // namespace weft::search
