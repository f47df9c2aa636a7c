#include "weft/search/evaluator.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "weft/base/machine.h"
#include "weft/plan/hash.h"
#include "weft/search/known_plans.h"
#include "weft/search/least_of_plan.h"
#include "weft/search/part_variants.h"

namespace weft::search {
namespace {

// The value at `layers` of the line through what two shorter plans gave. Never below the longer plan's.
class Line {
 public:
  Line(std::int64_t shorter, std::int64_t longer, std::int64_t layers)
      : steps_(static_cast<double>(layers - longer) / static_cast<double>(longer - shorter)) {}

  double at(double shorter, double longer) const {
    const double rise = longer - shorter;
    return rise > 0 ? longer + rise * steps_ : longer;
  }

 private:
  double steps_;
};

Evaluation continued(const Line& line, const Evaluation& a, const Evaluation& b) {
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
  // The fullest moment may be another one with another number of layers, and its kinds with it.
  if (const double total = whole.memory.total(); total > 0) whole.memory.scale(whole.peak_bytes / total);
  for (std::size_t axis = 0; axis < whole.traffic.size() && axis < a.traffic.size(); ++axis) {
    whole.traffic[axis].bytes = line.at(a.traffic[axis].bytes, b.traffic[axis].bytes);
    whole.traffic[axis].busy_seconds = line.at(a.traffic[axis].busy_seconds, b.traffic[axis].busy_seconds);
  }
  return whole;
}

// On as many threads as there are processors.
void do_all(std::size_t jobs, const std::function<void(std::size_t)>& job) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t j = next++; j < jobs; j = next++) job(j);
  };
  const auto most_threads = static_cast<std::size_t>(available_processors());
  std::vector<std::jthread> threads;
  while (threads.size() + 1 < std::min(jobs, most_threads)) threads.emplace_back(work);
  work();
}

std::vector<Result<Evaluation>> answer_all(std::size_t questions,
                                           const std::function<Result<Evaluation>(std::size_t)>& answer) {
  std::vector<Result<Evaluation>> found(questions, Evaluation());
  do_all(questions, [&](std::size_t q) { found[q] = answer(q); });
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

Evaluator::Evaluator(const plan::Graph& graph, const distribute::Phases& phases, Machine machine,
                     KnownPlans* known)
    : graph_(graph),
      phases_(phases),
      machine_(std::move(machine)),
      known_plans_(machine_.digest == Digest() ? nullptr : known) {
  layers_ = repeated_layers(graph, phases);
  if (layers_ <= kLonger) return;
  shorter_ = fold(graph, phases, kShorter);
  longer_ = fold(graph, phases, kLonger);
  if (!shorter_) longer_.reset();
}

Result<PredictedPlan> Evaluator::predict(const distribute::Distribution& distribution,
                                         const sim::PredictOptions& options) const {
  WEFT_TRY(costs, machine_.costs(distribution.mesh));
  WEFT_TRY(prices, machine_.prices(distribution.mesh));
  PredictedPlan made;
  WEFT_TRY(plan, distribute::distribute(graph_, phases_, distribution, {.prices = std::move(prices)}));
  made.plan = std::move(plan);
  sim::PredictOptions how = options;
  how.workers = machine_.workers;
  how.overlap = machine_.overlap;
  WEFT_TRY(prediction, sim::predict(made.plan.graph, made.plan.mesh, made.plan.layouts, costs, how));
  made.prediction = std::move(prediction);
  return made;
}

struct Evaluator::Spread {
  distribute::DistributedPlan plan;
  cost::StepCosts costs;
  double least = 0;  // seconds
};

Result<Evaluator::Spread> Evaluator::spread(const Folded& plan,
                                            const distribute::Distribution& distribution) const {
  return spread(plan.graph, plan.phases, distribution);
}

Result<Evaluator::Spread> Evaluator::spread(const plan::Graph& graph, const distribute::Phases& phases,
                                            const distribute::Distribution& distribution) const {
  WEFT_TRY(costs, machine_.costs(distribution.mesh));
  WEFT_TRY(prices, machine_.prices(distribution.mesh));
  WEFT_TRY(plan, distribute::distribute(graph, phases, distribution, {.prices = prices}));
  // Of a machine whose peak is not known, links may be guesses too.
  const double least = machine_.peak ? least_of_plan(plan, machine_.peak, prices) : 0;
  return Spread{std::move(plan), std::move(costs), least};
}

Result<Evaluation> Evaluator::simulate(const Spread& spread) const {
  const distribute::DistributedPlan& plan = spread.plan;
  const Digest key = Hasher()
                         .digest_of(structural_hash(plan.graph))
                         .text(print(plan.mesh))
                         .digest_of(machine_.digest)
                         .digest();
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

Evaluator::Looked Evaluator::look(const distribute::Distribution& distribution, double ceiling) const {
  if (!longer_) {
    const Result<Spread> whole = spread(graph_, phases_, distribution);
    if (!whole.ok()) return {whole.error()};
    if (whole->least > ceiling) return {Evaluation(), whole->least};
    return {simulate(*whole)};
  }
  const distribute::Distribution folded = without_dropped_layers(distribution);
  const Result<Spread> a = spread(*shorter_, folded), b = spread(*longer_, folded);
  if (!a.ok() || !b.ok()) return {a.ok() ? b.error() : a.error()};
  const Line line(kShorter, kLonger, layers_);
  if (const double least = line.at(a->least, b->least); least > ceiling) return {Evaluation(), least};
  const Result<Evaluation> of_a = simulate(*a), of_b = simulate(*b);
  if (!of_a.ok() || !of_b.ok()) return {of_a.ok() ? of_b.error() : of_a.error()};
  return {continued(line, *of_a, *of_b)};
}

// An exception may speak of one layer that the short plans do not have. What no layer has stays, and is
// refused.
distribute::Distribution Evaluator::without_dropped_layers(
    const distribute::Distribution& distribution) const {
  if (distribution.exceptions.empty()) return distribution;
  distribute::Distribution made = distribution;
  const auto there = tensor_names(shorter_->graph);
  const auto is_missing = [&](const distribute::Exception& exception) {
    return !there.contains(exception.tensor);
  };
  if (std::ranges::none_of(made.exceptions, is_missing)) return made;
  const auto everywhere = tensor_names(graph_);
  std::erase_if(made.exceptions, [&](const distribute::Exception& exception) {
    return is_missing(exception) && everywhere.contains(exception.tensor);
  });
  return made;
}

std::vector<Result<Evaluation>> Evaluator::predict_all(
    std::span<const distribute::Distribution> distributions) const {
  return answer_all(distributions.size(), [&](std::size_t d) -> Result<Evaluation> {
    WEFT_TRY(predicted, predict(distributions[d], {.quick = true}));
    return predicted.evaluation();
  });
}

std::vector<Result<Evaluation>> Evaluator::estimate_parts(std::span<const PartQuestion> questions) const {
  return answer_all(questions.size(), [&](std::size_t q) -> Result<Evaluation> {
    WEFT_TRY(part, spread(*questions[q].part, questions[q].distribution));
    return simulate(part);
  });
}

Result<Evaluation> Evaluator::estimate(const distribute::Distribution& distribution) {
  std::string text = distribute::print(distribution);
  if (const auto found = known_.find(text); found != known_.end()) return found->second;
  constexpr double kAny = std::numeric_limits<double>::infinity();
  least_.erase(text);
  return known_.emplace(std::move(text), look(distribution, kAny).evaluation).first->second;
}

bool Evaluator::rules_out(const distribute::Distribution& distribution, double ceiling) const {
  const auto found = least_.find(distribute::print(distribution));
  return found != least_.end() && found->second > ceiling && !knows(distribution);
}

void Evaluator::estimate_all(std::span<const distribute::Distribution> distributions, std::int64_t most,
                             double ceiling) {
  struct Job {
    const distribute::Distribution* distribution;
    std::string text;
    std::optional<Looked> looked;
  };
  // What is ruled out leaves room for others, so there may be several rounds.
  for (std::size_t next = 0; next < distributions.size() && most > 0;) {
    std::vector<Job> jobs;
    for (; next < distributions.size() && static_cast<std::int64_t>(jobs.size()) < most; ++next) {
      const distribute::Distribution& distribution = distributions[next];
      std::string text = distribute::print(distribution);
      if (!known_.contains(text) && !rules_out(distribution, ceiling))
        jobs.push_back({&distribution, std::move(text), {}});
    }
    do_all(jobs.size(), [&](std::size_t j) { jobs[j].looked.emplace(look(*jobs[j].distribution, ceiling)); });
    for (Job& job : jobs) {
      if (job.looked->least) {
        least_.emplace(std::move(job.text), *job.looked->least);
        continue;
      }
      least_.erase(job.text);
      if (known_.emplace(std::move(job.text), std::move(job.looked->evaluation)).second) --most;
    }
  }
}

std::int64_t Evaluator::failures() const {
  return std::ranges::count_if(known_, [](const auto& entry) { return !entry.second.ok(); });
}

}  // namespace weft::search
