#include "weft/app/command/tune.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/app/explain/tune_report.h"
#include "weft/app/session/reply.h"
#include "weft/base/units.h"
#include "weft/predict/cost/statistics.h"
#include "weft/predict/sim/collective/collective_cluster.h"
#include "weft/runtime/measure/tune_check.h"
#include "weft/runtime/measure/tune_group.h"
#include "weft/runtime/run/own_ranks.h"

namespace weft::command {
namespace {

using comm::Kind;

constexpr std::int32_t kMostTuneRanks = 256;
constexpr std::int32_t kStandardSeconds = 60, kQuickSeconds = 15, kMostTuneSeconds = 24 * 3600;
constexpr std::int64_t kLargestTuneMessage = std::int64_t{1} << 30;

std::int32_t seconds_of(const Tune& request) {
  if (request.seconds > 0) return request.seconds;
  return request.quick ? kQuickSeconds : kStandardSeconds;
}

Result<std::vector<Kind>> kinds_of(const Tune& request) {
  std::vector<Kind> kinds;
  for (std::string name : request.collectives) {
    std::ranges::replace(name, '-', '_');
    WEFT_TRY(kind, collective::parse_kind(name));
    if (kind == Kind::custom || kind == Kind::send) {
      return user_error(fmt::format("weft tune does not measure {}", name),
                        "it measures all_reduce, all_gather and similar collectives");
    }
    kinds.push_back(kind);
  }
  if (kinds.empty())
    kinds = {Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather, Kind::all_to_all, Kind::broadcast};
  return kinds;
}

Result<measure::TunePlan> plan_of(const Tune& request, const std::string& transport) {
  measure::TunePlan plan;
  const auto found = comm::find_transport(transport);
  if (!found) return user_error(fmt::format("unknown transport: {}", transport), "shm, tcp or mpi");
  plan.transport = *found;
  WEFT_TRY(kinds, kinds_of(request));
  plan.kinds = std::move(kinds);
  WEFT_TRY(powers, sim::parse_sizes(request.sizes));
  if (powers.back() > kLargestTuneMessage) {
    return user_error(fmt::format("expected sizes up to {}, found {}", print_bytes(kLargestTuneMessage),
                                  print_bytes(static_cast<double>(powers.back()))));
  }
  const std::size_t step = request.quick ? 4 : 2;  // in powers of two
  for (std::size_t i = 0; i < powers.size(); ++i) {
    const bool tuned = i % step == 0 || i + 1 == powers.size();
    if (request.check ? !tuned && i % step == step / 2 : tuned) plan.sizes.push_back(powers[i]);
  }
  if (plan.sizes.empty())
    return user_error("there is no size between the measured sizes",
                      "give more sizes, for example 256B..64MiB");
  if (request.check) plan.chosen_from = request.statistics;
  plan.time = std::chrono::seconds(seconds_of(request));
  plan.on_note = request.on_note;
  return plan;
}

// Merges the results of one group into `all`.
void add(measure::Tuned& all, measure::Tuned one) {
  for (const auto& [setting, candidates] : one.table.settings()) all.table.set(setting, candidates);
  all.measured += one.measured;
  all.skipped += one.skipped;
  all.times += one.times;
  all.disturbed += one.disturbed;
  all.dropped.insert(all.dropped.end(), one.dropped.begin(), one.dropped.end());
}

Status add_to_statistics(const Tune& request, const measure::Tuned& tuned) {
  std::vector<cost::CollectiveTime> times;
  for (const auto& [setting, candidates] : tuned.table.settings())
    for (const comm::Candidate& candidate : candidates)
      for (const comm::TimePoint& time : candidate.times)
        times.push_back({setting.kind, setting.ranks, setting.hosts, setting.transport, setting.allocated,
                         candidate.name, time.bytes, time.seconds, cost::seconds_since_1970()});
  WEFT_TRY(statistics, cost::Statistics::open(request.statistics, cost::Access::write));
  return statistics.add(times);
}

void keep(const Tune& request, const measure::Tuned& tuned) {
  if (request.check || request.statistics == "none") return;
  if (const Status kept = add_to_statistics(request, tuned); !kept.ok() && request.on_note)
    request.on_note(fmt::format("the times were not saved: {}", kept.error().message));
}

// One rank's share: measures all transports in turn within the existing job.
Result<measure::Tuned> take_part(const std::shared_ptr<transport::Job>& job, const Tune& request) {
  std::vector<std::string> transports = request.transports;
  if (transports.empty()) transports.emplace_back("automatic");
  measure::Tuned all;
  for (const std::string& transport : transports) {
    WEFT_TRY(plan, plan_of(request, transport));
    plan.time /= static_cast<std::int64_t>(transports.size());
    if (job->rank() != 0) plan.on_note = {};
    WEFT_TRY(tuned, measure::tune_group(job, plan));
    add(all, std::move(tuned));
  }
  return all;
}

Result<measure::Tuned> start_ranks(const Tune& request) {
  std::vector<std::int32_t> ranks = request.ranks;
  if (ranks.empty()) ranks = {2, 4, 8};
  std::vector<std::string> transports = request.transports;
  if (transports.empty()) transports = {"shm", "tcp"};
  const std::int32_t runs = static_cast<std::int32_t>(ranks.size() * transports.size());
  const std::int32_t seconds = std::max(seconds_of(request) / runs, 1);
  measure::Tuned all;
  for (const std::int32_t each : ranks)
    for (const std::string& transport : transports) {
      run::OwnRanks own{.command = "tune",
                        .arguments = {"--transport", transport, "--sizes", request.sizes, "--seconds",
                                      fmt::to_string(seconds)},
                        .on_note = request.on_note};
      own.ranks = each;
      // Started sizes are completed, so a run can exceed its time; this bounds it.
      own.timeout = std::chrono::seconds(120 + 4 * seconds);
      if (!request.collectives.empty())
        own.arguments.insert(own.arguments.end(),
                             {"--collectives", fmt::format("{}", fmt::join(request.collectives, ","))});
      if (request.quick) own.arguments.emplace_back("--quick");
      if (request.check) own.arguments.emplace_back("--check");
      if (request.check && !request.statistics.empty())
        own.arguments.insert(own.arguments.end(), {"--statistics", request.statistics});
      WEFT_TRY(text, run::run_own_ranks(own));
      WEFT_TRY(tuned, measure::parse_tuned(text));
      keep(request, tuned);  // if interrupted here, results so far are saved
      add(all, std::move(tuned));
    }
  return all;
}

Status check_request(const Tune& request) {
  for (const std::int32_t ranks : request.ranks)
    if (ranks < 2 || ranks > kMostTuneRanks)
      return user_error(fmt::format("expected 2 to {} ranks, found {}", kMostTuneRanks, ranks));
  if (request.seconds < 0 || request.seconds > kMostTuneSeconds)
    return user_error(fmt::format("expected 1 to {} seconds, found {}", kMostTuneSeconds, request.seconds));
  // Reports errors before any rank is started.
  for (const std::string& transport : request.transports)
    WEFT_TRY_STATUS([&]() -> Status {
      WEFT_TRY(plan, plan_of(request, transport));
      return {};
    }());
  WEFT_TRY(plan, plan_of(request, "shm"));
  return {};
}

Result<std::string> finish(const Tune& request, const measure::Tuned& tuned) {
  const bool json = request.format == session::Format::json;
  const auto note = [&](const std::string& text) {
    if (request.on_note) request.on_note(text);
  };
  if (request.check) {
    const comm::LoadedChoices loaded = comm::load_choices(request.statistics);
    if (!loaded.trouble.empty()) note(fmt::format("nothing was read: {}", loaded.trouble));
    if (loaded.table.settings().empty())
      note("no measurements on this machine: checking the default figures");
    const measure::TuneChecks checks = measure::check_predictions(loaded.table, tuned.table);
    return json ? explain::check_json(tuned, checks) : explain::check_text(tuned, checks);
  }
  return json ? explain::tuned_json(tuned) : explain::tuned_text(tuned);
}

Result<std::string> answer(const Tune& request) {
  WEFT_TRY_STATUS(check_request(request));
  const run::Part part = run::part_in("tune", !request.ranks.empty());
  if (part == run::Part::starts_ranks) {
    WEFT_TRY(tuned, start_ranks(request));
    return finish(request, tuned);
  }
  WEFT_TRY(job, run::join_from_environment());
  WEFT_TRY(tuned, take_part(job, request));
  const bool first = job->rank() == 0;
  job->leave();
  if (!first) return std::string();
  if (part == run::Part::own_rank) return print(tuned);
  keep(request, tuned);
  return finish(request, tuned);
}

}  // namespace

session::Reply run(const Tune& request) { return session::to_reply(answer(request)); }

}  // namespace weft::command
