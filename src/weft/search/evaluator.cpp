#include "weft/search/evaluator.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "weft/base/machine.h"
#include "weft/plan/hash.h"

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

Evaluator::Evaluator(const plan::Graph& graph, const distribute::Phases& phases, Machine machine)
    : graph_(graph), phases_(phases), machine_(std::move(machine)) {
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

Result<Evaluation> Evaluator::evaluate(const plan::Graph& graph, const distribute::Phases& phases,
                                       const distribute::Distribution& distribution) const {
  WEFT_TRY(costs, machine_.costs(distribution.mesh));
  WEFT_TRY(prices, machine_.prices(distribution.mesh));
  WEFT_TRY(plan, distribute::distribute(graph, phases, distribution, {.prices = std::move(prices)}));
  const Digest key = Hasher().digest_of(structural_hash(plan.graph)).text(print(plan.mesh)).digest();
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = plans_.find(key); found != plans_.end()) return found->second;
  }
  WEFT_TRY(prediction,
           sim::predict(
               plan.graph, plan.mesh, plan.layouts, costs,
               {.overlap = machine_.overlap, .timeline = false, .workers = machine_.workers, .quick = true}));
  const Evaluation evaluation = PredictedPlan{{}, std::move(prediction)}.evaluation();
  const std::lock_guard lock(mutex_);
  plans_.emplace(key, evaluation);
  return evaluation;
}

Result<Evaluation> Evaluator::look(const distribute::Distribution& distribution) const {
  if (!longer_) return evaluate(graph_, phases_, distribution);
  WEFT_TRY(a, evaluate(shorter_->graph, shorter_->phases, distribution));
  WEFT_TRY(b, evaluate(longer_->graph, longer_->phases, distribution));
  return continued(Line(kShorter, kLonger, layers_), a, b);
}

Result<Evaluation> Evaluator::estimate(const distribute::Distribution& distribution) {
  std::string text = distribute::print(distribution);
  if (const auto found = known_.find(text); found != known_.end()) return found->second;
  return known_.emplace(std::move(text), look(distribution)).first->second;
}

void Evaluator::estimate_all(std::span<const distribute::Distribution> distributions, std::int64_t most) {
  struct Job {
    const distribute::Distribution* distribution;
    std::string text;
    std::optional<Result<Evaluation>> evaluation;
  };
  std::vector<Job> jobs;
  for (const distribute::Distribution& distribution : distributions) {
    if (static_cast<std::int64_t>(jobs.size()) >= most) break;
    std::string text = distribute::print(distribution);
    if (!known_.contains(text)) jobs.push_back({&distribution, std::move(text), {}});
  }
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t j = next++; j < jobs.size(); j = next++)
      jobs[j].evaluation = look(*jobs[j].distribution);
  };
  {
    const auto most_threads = static_cast<std::size_t>(available_processors());
    std::vector<std::jthread> threads;
    while (threads.size() + 1 < std::min(jobs.size(), most_threads)) threads.emplace_back(work);
    work();
  }
  for (Job& job : jobs) known_.emplace(std::move(job.text), std::move(*job.evaluation));
}

std::int64_t Evaluator::failures() const {
  return std::ranges::count_if(known_, [](const auto& entry) { return !entry.second.ok(); });
}

}  // namespace weft::search
