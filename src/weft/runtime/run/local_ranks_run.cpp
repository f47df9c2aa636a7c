#include "weft/runtime/run/local_ranks_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "weft/base/units.h"
#include "weft/predict/cost/choose_algorithms.h"
#include "weft/runtime/run/batch_prefetcher.h"
#include "weft/runtime/run/fit_program.h"
#include "weft/runtime/run/local_ranks_member.h"
#include "weft/runtime/run/rank_program.h"
#include "weft/runtime/run/serialized_training.h"
#include "weft/runtime/run/step_request.h"
#include "weft/runtime/run/summation_server.h"

namespace weft::run {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kStepsLookedAt = 5;  // maximum per measurement of rank speeds

// A rank's timelines and the start times of its steps, with serialization.
class MeasuredSteps {
 public:
  void add(Clock::time_point begin, program::Timeline timeline) {
    begins_.push_back(std::chrono::duration<double>(begin.time_since_epoch()).count());
    timelines_.push_back(std::move(timeline));
  }

  std::vector<std::byte> to_bytes() const {
    std::vector<std::byte> bytes;
    const auto append = [&](const void* from, std::size_t count) {
      const auto* const first = static_cast<const std::byte*>(from);
      bytes.insert(bytes.end(), first, first + count);
    };
    for (std::size_t i = 0; i < timelines_.size(); ++i) {
      const std::uint64_t tasks = timelines_[i].tasks.size();
      append(&begins_[i], sizeof(double));
      append(&timelines_[i].seconds, sizeof(double));
      append(&tasks, sizeof tasks);
      append(timelines_[i].tasks.data(), tasks * sizeof(program::TaskTime));
    }
    return bytes;
  }

  // The bytes come from the same program on another rank of this run.
  static MeasuredSteps from_bytes(std::span<const std::byte> bytes) {
    MeasuredSteps steps;
    const auto take = [&](void* to, std::size_t count) {
      WEFT_CHECK(bytes.size() >= count);
      std::memcpy(to, bytes.data(), count);
      bytes = bytes.subspan(count);
    };
    while (!bytes.empty()) {
      std::uint64_t tasks = 0;
      take(&steps.begins_.emplace_back(), sizeof(double));
      program::Timeline& timeline = steps.timelines_.emplace_back();
      take(&timeline.seconds, sizeof(double));
      take(&tasks, sizeof tasks);
      WEFT_CHECK(tasks <= bytes.size() / sizeof(program::TaskTime));
      timeline.tasks.resize(tasks);
      take(timeline.tasks.data(), tasks * sizeof(program::TaskTime));
    }
    return steps;
  }

  // Shifts times relative to `first`; the ranks of a machine share a clock.
  std::vector<program::Timeline> counted_from(const MeasuredSteps& first) && {
    for (std::size_t i = 0; i < timelines_.size() && i < first.begins_.size(); ++i) {
      const double later = begins_[i] - first.begins_[i];
      for (program::TaskTime& task : timelines_[i].tasks) task.begin += later, task.end += later;
    }
    return std::move(timelines_);
  }

 private:
  std::vector<double> begins_;
  std::vector<program::Timeline> timelines_;
};

// The training loop of one rank.
class Loop {
 public:
  // `everywhere`: all ranks keep what rank 0 keeps.
  Loop(Member& member, const Feed& feed, const DistributedRun& run, Weights weights, bool everywhere)
      : member_(member),
        batches_(member.rank(), [&member, &feed](std::int64_t step) { member.feed(feed, step); }),
        run_(run),
        weights_(std::move(weights)),
        everywhere_(everywhere),
        is_first_(member.number() == 0) {
    if (!run.sizes.empty()) weights_.sizes = run.sizes;
    weights_.plan = run.plan;
    weights_.launch = run.launch;
  }

  // Marks this rank as a process started by LOCAL.
  void is_process() { is_process_ = true; }

  // Updates `step` as it goes, so that it is known after a failure.
  Status run(std::int64_t& step) {
    const TrainingRun& training = run_.training;
    const auto begin = Clock::now();
    member_.rank().count_from(training.first_step + 1);
    Status trouble;  // of rank 0; makes the others stop normally
    for (std::int64_t i = 0;; ++i) {
      WEFT_TRY(said, member_.hear(is_first_ ? what_next(i, trouble) : wish()));
      const Word word = said.word;
      if (word == kAbort) return trouble;
      outcome_.time_up = word == kTimeUp;
      outcome_.interrupted = word == kInterrupted;
      outcome_.terminated = word == kTerminated;
      outcome_.ended_by = outcome_.terminated ? said.rank : 0;
      changes_plan_ = word == kChangePlan;
      if (word >= kChangePlan) break;
      step = training.first_step + i;
      // Based on the model's step, so that restarted ranks copy and average at the same steps as
      // surviving ones.
      copy_is_due_ = copy_is_due_ || (run_.keep_every > 0 && (i == 0 || step % run_.keep_every == 0));
      if (copy_is_due_ && alike_) {
        WEFT_TRY_STATUS(member_.agree(/*wholly=*/true));  // values held by one rank would be lost with it
        WEFT_TRY_STATUS(member_.keep_copy(step));
        copy_is_due_ = false;
      }
      WEFT_TRY_STATUS(one_step(i, step));
      WEFT_TRY_STATUS(agree(step + 1, /*wholly=*/word == kContinueAndGather));
      WEFT_TRY(loss, member_.loss());
      outcome_.last_loss = loss;
      WEFT_TRY(further, further_losses(member_.rank(), training.losses));
      outcome_.last_further = std::move(further);
      if (i == 0) outcome_.first_loss = outcome_.last_loss, outcome_.first_further = outcome_.last_further;
      outcome_.steps_done = i + 1;
      outcome_.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      check_is_due_ = check_is_due_ || (run_.check_every > 0 && (step + 1) % run_.check_every == 0);
      if (check_is_due_ && alike_) {
        WEFT_TRY_STATUS(member_.compare_replicas(step + 1));
        check_is_due_ = false;
      }
      if (is_first_) trouble = look_at(step + 1);
      if (word == kContinueAndGather) WEFT_TRY_STATUS(keep(step + 1, trouble));
      if (run_.look_every > 0 && (i + 1) % run_.look_every == 0) WEFT_TRY_STATUS(look_at_speeds(step + 1));
    }
    weights_.step = training.first_step + outcome_.steps_done;
    WEFT_TRY_STATUS(member_.agree(/*wholly=*/true));
    WEFT_TRY_STATUS(member_.gather(weights_, everywhere_));
    WEFT_TRY_STATUS(gather_timelines());
    return member_.wait_for_all();
  }

  void move_to(DistributedOutcome& outcome) && {
    outcome.training = outcome_;
    outcome.changes_plan = changes_plan_;
    outcome.weights = std::move(weights_);
    outcome.timelines = std::move(timelines_);
    outcome.rank = member_.number();
    outcome.by_definition = program::find_reference_ops(member_.rank().program());
    outcome.bytes = member_.rank().bytes();
  }

 private:
  Status one_step(std::int64_t i, std::int64_t step) {
    batches_.bring(step);
    WEFT_TRY_STATUS(write_rate(member_.rank(), run_.training.schedule, step));
    const bool measures = run_.measure_from && i >= *run_.measure_from, looks = is_looked_at(i);
    if (!measures && !looks) return member_.rank().step();
    program::Timeline timeline;
    const auto begin = Clock::now();
    WEFT_TRY_STATUS(member_.rank().step(timeline));
    if (looks) looked_at_.push_back(step_times(member_.rank().program(), timeline));
    if (measures) measured_.add(begin, std::move(timeline));
    return {};
  }

  // With local steps, copies diverge until the next average, or until the tensors are gathered.
  Status agree(std::int64_t done, bool wholly) {
    const std::int64_t alone = member_.steps_between_averages();
    if (alone == 1) return {};
    member_.part();
    alike_ = wholly || done % alone == 0;
    return alike_ ? member_.agree(wholly) : Status();
  }

  // The last steps before a measurement is evaluated. Skips the very first step, which does extra
  // work.
  bool is_looked_at(std::int64_t i) const {
    return run_.look_every > 0 && i > 0 &&
           i % run_.look_every >= run_.look_every - std::min(run_.look_every, kStepsLookedAt);
  }

  Status look_at_speeds(std::int64_t done) {
    const std::vector<StepTimes> mine = std::exchange(looked_at_, {});
    if (mine.empty()) return {};
    WEFT_TRY(all, member_.gather(to_bytes(mine), false));
    const bool is_last = done == run_.training.first_step + run_.training.steps;
    if (!is_first_ || !run_.on_speeds || is_last) return {};
    std::vector<std::vector<StepTimes>> ranks;
    for (const std::vector<std::byte>& bytes : all)
      ranks.push_back(steps_from(bytes, mine.front().exchanges.size()));
    wants_other_plan_ = run_.on_speeds(done, speeds_of(member_.rank().program(), member_.mesh(), ranks));
    return {};
  }

  Word what_next(std::int64_t i, const Status& trouble) {
    if (!trouble.ok()) return kAbort;
    if (i == run_.training.steps) return kDone;
    if (std::exchange(wants_other_plan_, false)) return kChangePlan;
    if (const Word asked = asked_to_stop(); asked != kContinue) return asked;
    if (run_.training.until && Clock::now() >= *run_.training.until) return kTimeUp;
    return run_.is_due && run_.is_due(run_.training.first_step + i + 1) ? kContinueAndGather : kContinue;
  }

  // The word of a rank other than 0: ranks that are processes receive their own signals.
  Word wish() const { return everywhere_ || is_process_ ? asked_to_stop() : kContinue; }

  Word asked_to_stop() const {
    if (run_.training.terminated && run_.training.terminated()) return kTerminated;
    return run_.training.interrupted && run_.training.interrupted() ? kInterrupted : kContinue;
  }

  Status look_at(std::int64_t done) const {
    std::vector<double> losses = outcome_.last_further;
    losses.insert(losses.begin(), outcome_.last_loss);
    WEFT_TRY(scale, loss_scale_after(member_.rank(), done));
    for (const double loss : losses)
      if (!scale && !std::isfinite(loss))
        return user_error(print_divergence(loss, done),
                          "a smaller learning_rate may help; on one rank TRAIN reports where it began");
    if (!run_.training.on_step) return {};
    return run_.training.on_step({done, outcome_.last_loss, outcome_.seconds, outcome_.last_further});
  }

  // All ranks gather even if rank 0 has an error, because the others do not know of it yet.
  Status keep(std::int64_t done, Status& trouble) {
    weights_.step = done;
    WEFT_TRY_STATUS(member_.gather(weights_, false));
    if (is_first_ && trouble.ok() && run_.on_weights) trouble = run_.on_weights(done, weights_);
    return {};
  }

  Status gather_timelines() {
    if (!run_.measure_from) return {};
    WEFT_TRY(all, member_.gather(measured_.to_bytes(), everywhere_));
    if (all.empty()) return {};
    const MeasuredSteps first = MeasuredSteps::from_bytes(all.front());
    for (const std::vector<std::byte>& bytes : all)
      timelines_.push_back(MeasuredSteps::from_bytes(bytes).counted_from(first));
    return {};
  }

  Member& member_;
  BatchPrefetcher batches_;
  const DistributedRun& run_;
  Weights weights_;
  const bool everywhere_, is_first_;
  bool is_process_ = false;
  TrainingOutcome outcome_;
  bool wants_other_plan_ = false, changes_plan_ = false;
  bool alike_ = true;  // copies on different ranks are equal
  bool copy_is_due_ = false, check_is_due_ = false;
  std::vector<StepTimes> looked_at_;
  MeasuredSteps measured_;
  std::vector<std::vector<program::Timeline>> timelines_;
};

// Servers are the job's ranks after those of the plan.
std::string who(std::int32_t rank, std::int32_t ranks) {
  return rank < ranks ? fmt::format("rank {}", rank) : fmt::format("server {}", rank - ranks);
}

Error explain(const RankFailure& failure, const transport::Death* death, std::int64_t step,
              std::int32_t ranks) {
  constexpr std::string_view kHint =
      "the last checkpoint is complete: LOAD it, and TRAIN continues from there";
  if (failure.died || death != nullptr)
    return environment_error(
        fmt::format("{} failed in step {}; the other ranks stopped: {}",
                    who(failure.died ? failure.rank : death->rank, ranks), print_exact(step + 1),
                    failure.died ? failure.error.message : death->how),
        std::string(kHint));
  Error error = failure.error;
  const bool names_ranks = error.message.starts_with("rank ");  // such as errors found jointly
  if (failure.rank != 0 && !names_ranks)
    error.message = fmt::format("{}: {}", who(failure.rank, ranks), error.message);
  return error;
}

}  // namespace

Result<program::Program> compile_for_rank(const distribute::DistributedPlan& plan, std::int32_t rank,
                                          const LocalRanksOptions& options) {
  WEFT_TRY(fitted, fit_for_rank(plan, rank, rank_compiling(options.workers, options.gpu != nullptr),
                                options.spills ? options.memory_limit : 0, options.gpu));
  if (plan.time || options.algorithms.empty()) return std::move(fitted.program);
  return cost::with_algorithms(std::move(fitted.program), options.algorithms);
}

namespace {

// Whether a rank failed without leaving the job, while rank 0 is alive to receive the rescued
// tensors. Other ranks may notice broken connections before this process is notified of the
// failure, so this waits a little.
bool has_death(const transport::Job& job, const Status& status) {
  constexpr std::chrono::seconds kPatience{2};
  constexpr std::chrono::milliseconds kPause{1};
  if (status.ok()) return false;
  std::vector<transport::Death> deaths = job.deaths();
  for (const auto begin = Clock::now();
       deaths.empty() && status.error().fault == Fault::world && Clock::now() - begin < kPatience;
       deaths = job.deaths())
    std::this_thread::sleep_for(kPause);
  return std::ranges::any_of(deaths, [](const transport::Death& death) { return !death.left; }) &&
         std::ranges::none_of(deaths, [](const transport::Death& death) { return death.rank == 0; });
}

}  // namespace

Status run_training_rank(const std::shared_ptr<transport::Job>& job, std::span<const std::byte> work) {
  (void)received_sigterm();  // starts handling SIGTERM: rank 0 may receive it too, and saves
  WEFT_TRY(part, read_training_part(work));
  if (job->rank() >= part.options.ranks) return serve_sums(part.plan, job, part.options);
  WEFT_TRY(feed, open_recipe(part.feed, part.plan.graph));
  WEFT_TRY(member, Member::start(part.plan, job, part.options, part.start));
  part.start.tensors.clear();
  DistributedRun run;
  run.training.first_step = part.first_step;
  run.training.terminated = received_sigterm;
  run.training.schedule = part.schedule;
  run.measure_from = part.watch.measure_from;
  run.check_every = part.watch.check_every;
  run.keep_every = part.watch.keep_every;
  run.look_every = part.watch.look_every;
  Loop loop(*member, *feed, run, without_tensors(part.start), /*everywhere=*/false);
  loop.is_process();
  std::int64_t step = part.first_step;
  Status status = loop.run(step);
  if (run.keep_every > 0 && has_death(*job, status))
    (void)member->rescue(without_tensors(part.start));  // for rank 0; this run has failed
  return status;
}

Result<DistributedOutcome> run_distributed(const distribute::DistributedPlan& plan,
                                           const LocalRanksOptions& options, const Feed& feed,
                                           const Weights& start, const DistributedRun& run) {
  if (options.ranks != plan.whole_mesh().ranks())
    return user_error(
        fmt::format("the plan is for {} ranks, LOCAL has {}", plan.whole_mesh().ranks(), options.ranks));
  WEFT_TRY(launched, launched_job());
  LocalRanksOptions meeting = options;
  if (options.gpu != nullptr) {
    if (launched != nullptr)
      return user_error("ranks on one GPU are threads of one process, so no launcher can start them",
                        "run weft without the launcher");
    WEFT_TRY(made, exec::GpuRendezvous::make(options.gpu));
    meeting.meeting = std::move(made);
  }
  DistributedOutcome outcome;
  std::int64_t step = run.training.first_step;  // of this process's rank
  std::optional<transport::Death> death;
  const auto mine = [&](const std::shared_ptr<transport::Job>& job) -> Status {
    if (job->rank() >= options.ranks) return serve_sums(plan, job, options);
    WEFT_TRY(member, Member::start(plan, job, meeting, start));
    Loop loop(*member, feed, run, without_tensors(start), launched != nullptr);
    std::int64_t at = run.training.first_step;
    const Status status = loop.run(at);
    // Among ranks started here only rank 0 returns a result; threads share the captured variables.
    if (launched == nullptr && job->rank() != 0) return status;
    step = at;
    if (status.ok()) std::move(loop).move_to(outcome);
    // Not under a launcher, which restarts its ranks without their memory.
    if (launched == nullptr && run.keep_every > 0 && run.on_rescue && has_death(*job, status))
      if (auto saved = member->rescue(without_tensors(start)); saved.ok()) run.on_rescue(std::move(*saved));
    for (const transport::Death& each : job->deaths())
      if (!each.left && !death) death = each;
    return status;
  };
  const auto bytes = [&]() -> Result<std::vector<std::byte>> {
    const std::string recipe = feed.recipe();
    if (recipe.empty())
      return environment_error("other processes cannot read this data",
                               "SET transport = inproc runs ranks as threads");
    return print_training_part(plan, options, recipe, start, run.training.first_step, run.training.schedule,
                               {run.measure_from, run.check_every, run.keep_every, run.look_every});
  };
  const auto failure = on_local_ranks(options, mine, {std::string(kTrainingPart), bytes});
  if (failure && (failure->died || death) && run.on_death) run.on_death();
  // All ranks on a device fail with it; the rank whose unit failed has the most detailed error.
  if (failure && options.gpu != nullptr) WEFT_TRY_STATUS(options.gpu->fault().heard());
  if (failure) return explain(*failure, death ? &*death : nullptr, step, options.ranks);
  return outcome;
}

}  // namespace weft::run
