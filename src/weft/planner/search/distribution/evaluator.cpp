#include "weft/planner/search/distribution/evaluator.h"

#include <algorithm>

#include "weft/base/parallel_for.h"
#include "weft/plan/graph/hash.h"
#include "weft/planner/search/distribution/known_plans.h"
#include "weft/planner/search/distribution/part_variants.h"

namespace weft::search {
namespace {

// Extrapolates linearly from two shorter plans to `layers`. Never below the value of the longer
// plan.
class TimeLine {
 public:
  TimeLine(std::int64_t shorter, std::int64_t longer, std::int64_t layers)
      : steps_(static_cast<double>(layers - longer) / static_cast<double>(longer - shorter)) {}

  double at(double shorter, double longer) const {
    const double rise = longer - shorter;
    return rise > 0 ? longer + rise * steps_ : longer;
  }

 private:
  double steps_;
};

Evaluation continued(const TimeLine& line, const Evaluation& a, const Evaluation& b) {
  Evaluation whole = b;
  const auto carry_on = [&](auto field) { whole.*field = line.at(a.*field, b.*field); };
  carry_on(&Evaluation::seconds);
  carry_on(&Evaluation::compute_seconds);
  carry_on(&Evaluation::communication_seconds);
  carry_on(&Evaluation::exposed_communication_seconds);
  carry_on(&Evaluation::peak_bytes);
  for (const auto kind :
       {&sim::MemoryByKind::parameters, &sim::MemoryByKind::gradients, &sim::MemoryByKind::optimizer,
        &sim::MemoryByKind::activations, &sim::MemoryByKind::inputs, &sim::MemoryByKind::scratch})
    whole.memory.*kind = line.at(a.memory.*kind, b.memory.*kind);
  // With more layers, memory may peak at another moment, with other shares of each kind.
  if (const double total = whole.memory.total(); total > 0) whole.memory.scale(whole.peak_bytes / total);
  for (std::size_t axis = 0; axis < whole.traffic.size() && axis < a.traffic.size(); ++axis) {
    whole.traffic[axis].bytes = line.at(a.traffic[axis].bytes, b.traffic[axis].bytes);
    whole.traffic[axis].busy_seconds = line.at(a.traffic[axis].busy_seconds, b.traffic[axis].busy_seconds);
  }
  return whole;
}

Error ended_before() { return user_error("the search ended before trying this"); }

std::vector<Result<Evaluation>> answer_all(std::size_t questions, SearchWatch& watch,
                                           const std::function<Result<Evaluation>(std::size_t)>& answer) {
  std::vector<Result<Evaluation>> found(questions, ended_before());
  parallel_for(questions, [&](std::size_t q) {
    if (!watch.over()) found[q] = answer(q);
  });
  return found;
}

}  // namespace

Evaluation PredictedPlan::evaluation() const {
  return {prediction.seconds,
          prediction.compute_seconds,
          prediction.communication_seconds,
          prediction.exposed_communication_seconds,
          prediction.peak_bytes,
          prediction.memory,
          prediction.traffic};
}

Evaluator::Evaluator(const plan::Graph& graph, Machine machine, KnownPlans* known, Watching watching,
                     const Asked& asked)
    : graph_(graph),
      machine_(std::move(machine)),
      asked_(asked),
      known_plans_(machine_.digest == Digest() ? nullptr : known),
      watch_(std::move(watching)) {
  for (const Folded folded : {Folded::all, Folded::longest}) {
    layers_ = repeated_layers(graph, folded);
    if (layers_ < kFewestFolded) continue;
    folded_ = folded;
    shorter_ = fold(graph, kShorter, folded);
    if (shorter_) longer_ = fold(graph, kLonger, folded);
    if (longer_) break;
  }
  shared_.emplace(longer_ ? *longer_ : graph_);
  if (longer_) shorter_shared_.emplace(*shorter_);
}

Result<PredictedPlan> Evaluator::predict(const distribute::Distribution& distribution,
                                         const sim::PredictOptions& options) const {
  WEFT_TRY(costs, machine_.costs(distribution.mesh));
  WEFT_TRY(prices, machine_.prices(distribution.mesh));
  PredictedPlan made;
  WEFT_TRY(plan, distribute::distribute(graph_, distribution, {.prices = std::move(prices)}));
  WEFT_TRY_STATUS(check_requirements(asked_, plan));
  made.plan = std::move(plan);
  sim::PredictOptions how = options;
  how.workers = machine_.workers;
  how.overlap = machine_.overlap;
  WEFT_TRY(prediction, sim::predict(made.plan.graph, made.plan.mesh, made.plan.layouts, costs, how));
  made.prediction = std::move(prediction);
  return made;
}

Result<Evaluator::Spread> Evaluator::spread(const plan::Graph& graph,
                                            const distribute::Distribution& distribution,
                                            Shared& shared) const {
  WEFT_TRY(costs, machine_.costs(distribution.mesh));
  WEFT_TRY(prices, machine_.prices(distribution.mesh));
  WEFT_TRY(plan, distribute::distribute(graph, distribution,
                                        {.prices = std::move(prices),
                                         .signatures = &shared.signatures,
                                         .openings = &shared.openings}));
  return Spread{std::move(plan), std::move(costs)};
}

// For whole plans or folded ones, not for parts: requirements apply to the whole plan.
Result<Evaluator::Spread> Evaluator::spread_whole(const plan::Graph& graph,
                                                  const distribute::Distribution& distribution,
                                                  Shared& shared) const {
  WEFT_TRY(made, spread(graph, distribution, shared));
  WEFT_TRY_STATUS(check_requirements(asked_, made.plan));
  return made;
}

Result<Evaluator::Spread> Evaluator::spread(const distribute::Distribution& distribution) const {
  if (!longer_) return spread_whole(graph_, distribution, *shared_);
  return spread_whole(*longer_, without_dropped_layers(distribution), *shared_);
}

Result<Evaluator::Glance> Evaluator::glance(const distribute::Distribution& distribution) const {
  WEFT_TRY(made, spread(distribution));
  const PeakRates quickest{&made.costs, machine_.peak, machine_.launch_seconds, machine_.convolution_rate,
                           machine_.bytes_per_second};
  Least least = plan_lower_bounds(made.plan, quickest);
  const double longer = least.seconds;
  if (longer_) {
    // Without the layer that the shorter version lacks.
    std::vector<bool> counts;
    for (const std::int64_t layer : layers_of_nodes(made.plan.graph, folded_))
      counts.push_back(layer != layers_ - (kLonger - kLonger / 2));
    const Least shorter = plan_lower_bounds(made.plan, quickest, counts);
    const TimeLine line(kShorter, kLonger, layers_);
    least = {line.at(shorter.seconds, least.seconds), line.at(shorter.bytes, least.bytes)};
  }
  const Digest plan = key_of(made.plan);
  return Glance{std::move(made), plan, least, least.seconds - longer};
}

Digest Evaluator::key_of(const distribute::DistributedPlan& plan) const {
  return Hasher()
      .digest_of(structural_hash(plan.graph))
      .number(plan.graph.node_count())  // recomputed nodes hash like the originals
      .text(print(plan.mesh))
      .digest_of(machine_.digest)
      .digest();
}

Result<Evaluation> Evaluator::simulate(const Spread& spread) const {
  const distribute::DistributedPlan& plan = spread.plan;
  const Digest key = key_of(plan);
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = plans_.find(key); found != plans_.end()) return found->second;
  }
  if (known_plans_ != nullptr)
    if (std::optional<Evaluation> known = known_plans_->find_estimate(key)) return *std::move(known);
  WEFT_TRY(prediction,
           sim::predict(
               plan.graph, plan.mesh, plan.layouts, spread.costs,
               {.overlap = machine_.overlap, .timeline = false, .workers = machine_.workers, .quick = true}));
  const Evaluation evaluation = PredictedPlan{{}, std::move(prediction)}.evaluation();
  if (known_plans_ != nullptr) known_plans_->keep_estimate(key, evaluation);
  const std::lock_guard lock(mutex_);
  plans_.emplace(key, evaluation);
  return evaluation;
}

Result<Evaluation> Evaluator::simulate_shorter(const distribute::Distribution& distribution) const {
  WEFT_TRY(made, spread_whole(*shorter_, without_dropped_layers(distribution), *shorter_shared_));
  return simulate(made);
}

Result<Evaluation> Evaluator::simulate_longer(const distribute::Distribution& distribution) const {
  WEFT_TRY(made, spread(distribution));
  return simulate(made);
}

// Drops exceptions for layers that the shorter plans do not have. Those that match no layer at all
// are kept, so that they are reported.
distribute::Distribution Evaluator::without_dropped_layers(
    const distribute::Distribution& distribution) const {
  if (distribution.exceptions.empty()) return distribution;
  distribute::Distribution made = distribution;
  std::call_once(named_, [&] {
    names_ = tensor_names(graph_);
    shorter_names_ = tensor_names(*shorter_);
  });
  std::erase_if(made.exceptions, [&](const distribute::Exception& exception) {
    return !shorter_names_.contains(exception.tensor) && names_.contains(exception.tensor);
  });
  return made;
}

std::vector<Result<Evaluation>> Evaluator::refine(
    std::span<const distribute::Distribution> distributions) const {
  return answer_all(distributions.size(), watch_, [&](std::size_t d) -> Result<Evaluation> {
    WEFT_TRY(predicted, predict(distributions[d], {.timeline = false, .alike = true}));
    return predicted.evaluation();
  });
}

std::vector<Result<Evaluation>> Evaluator::estimate_parts(std::span<const PartQuestion> questions) const {
  std::map<const plan::Graph*, Shared> shared;
  for (const PartQuestion& question : questions) shared.try_emplace(question.part, *question.part);
  return answer_all(questions.size(), watch_, [&](std::size_t q) -> Result<Evaluation> {
    const plan::Graph* const graph = questions[q].part;
    WEFT_TRY(part, spread(*graph, questions[q].distribution, shared.at(graph)));
    return simulate(part);
  });
}

const std::string& Evaluator::plainest(const std::string& text) const {
  const auto found = same_as_.find(text);
  return found == same_as_.end() ? text : found->second;
}

Result<Evaluation> Evaluator::estimate(const distribute::Distribution& distribution) {
  const distribute::Distribution* const one[] = {&distribution};
  estimate_all(one);
  const auto known = known_.find(plainest(distribute::print(distribution)));
  return known != known_.end() ? known->second : ended_before();
}

std::vector<Least> Evaluator::lower_bounds_of(std::span<const distribute::Distribution> distributions) {
  std::vector<Least> found(distributions.size());
  if (!machine_.peak) return found;
  std::vector<std::string> texts;
  std::vector<std::size_t> unseen;
  for (std::size_t d = 0; d < distributions.size(); ++d) {
    texts.push_back(distribute::print(distributions[d]));
    const std::string& text = plainest(texts[d]);
    if (!known_.contains(text) && least_.emplace(text, Least()).second) unseen.push_back(d);
  }

  constexpr std::size_t kMostKept = 250'000;  // nodes, a few hundred bytes each
  const std::size_t kept = kMostKept / std::max<std::size_t>(shared_->signatures.nodes(), 1);
  std::vector<std::optional<Result<Glance>>> glances(unseen.size());
  parallel_for(unseen.size(), [&](std::size_t u) {
    if (watch_.over()) return;
    glances[u].emplace(glance(distributions[unseen[u]]));
    if (glances[u]->ok() && u >= kept) (*glances[u])->spread = Spread();
  });
  spreads_.clear();
  for (std::size_t u = 0; u < unseen.size(); ++u) {
    const std::string& text = texts[unseen[u]];
    if (!glances[u]) {
      least_.erase(text);
      continue;
    }
    if (!glances[u]->ok()) {
      least_.erase(text);
      known_.emplace(text, glances[u]->error());
      continue;
    }
    Glance& made = **glances[u];
    if (const auto [first, is_new] = first_with_.emplace(made.plan, text); !is_new && first->second != text) {
      least_.erase(text);
      same_as_.emplace(text, first->second);
      continue;
    }
    least_[text] = made.least;
    further_seconds_[text] = made.further_seconds;
    if (u < kept) spreads_.emplace(text, std::move(made.spread));
  }

  constexpr double kAny = std::numeric_limits<double>::infinity();
  for (std::size_t d = 0; d < texts.size(); ++d) {
    const std::string& text = plainest(texts[d]);
    const auto known = known_.find(text);
    const auto least = least_.find(text);
    if (known == known_.end())
      found[d] = least != least_.end() ? least->second : Least{kAny, kAny};
    else
      found[d] =
          known->second.ok() ? Least{known->second->seconds, known->second->peak_bytes} : Least{kAny, kAny};
  }
  return found;
}

void Evaluator::estimate_all(std::span<const distribute::Distribution* const> distributions, double bar) {
  struct Job {
    const distribute::Distribution* distribution;
    std::string text;
    const Spread* ready = nullptr;                                // for the longer version, or the whole plan
    std::optional<Result<Evaluation>> longer = {}, shorter = {};  // nothing: not evaluated
  };
  std::vector<Job> jobs;
  for (const distribute::Distribution* distribution : distributions) {
    Job job{distribution, plainest(distribute::print(*distribution))};
    if (known_.contains(job.text)) continue;
    if (const auto made = spreads_.find(job.text); made != spreads_.end()) job.ready = &made->second;
    jobs.push_back(std::move(job));
  }
  parallel_for(jobs.size(), [&](std::size_t j) {
    if (watch_.over()) return;
    Job& job = jobs[j];
    job.longer = job.ready != nullptr ? simulate(*job.ready) : simulate_longer(*job.distribution);
  });
  // The second version is simulated only if the first is promising.
  const auto rule_out = [&](const Job& job) {
    const auto further = further_seconds_.find(job.text);
    if (!longer_ || !job.longer || !job.longer->ok() || further == further_seconds_.end()) return false;
    const double least = (*job.longer)->seconds + further->second;
    if (least < bar) return false;
    least_[job.text].seconds = least;
    return true;
  };
  std::erase_if(jobs, rule_out);
  if (longer_)
    parallel_for(jobs.size(), [&](std::size_t j) {
      if (!watch_.over()) jobs[j].shorter = simulate_shorter(*jobs[j].distribution);
    });
  for (Job& job : jobs) {
    if (!job.longer || (longer_ && !job.shorter)) continue;
    least_.erase(job.text);
    spreads_.erase(job.text);
    Result<Evaluation>& whole = *job.longer;
    if (longer_ && !job.shorter->ok())
      whole = std::move(*job.shorter);
    else if (longer_ && whole.ok())
      whole = continued(TimeLine(kShorter, kLonger, layers_), **job.shorter, *whole);
    known_.emplace(std::move(job.text), std::move(whole));
  }
}

std::int64_t Evaluator::failures() const {
  return std::ranges::count_if(known_, [](const auto& entry) { return !entry.second.ok(); });
}

}  // namespace weft::search
