#include "weft/session/tune.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/base/units.h"
#include "weft/cost/statistics.h"
#include "weft/explain/table.h"
#include "weft/session/collective_cluster.h"
#include "weft/session/own_ranks.h"
#include "weft/session/reply.h"
#include "weft/session/tune_check.h"
#include "weft/session/tune_group.h"

namespace weft::session {
namespace {

using comm::Kind;
using Json = nlohmann::ordered_json;

constexpr std::int32_t kMostRanks = 256;
constexpr std::int32_t kStandardSeconds = 60, kQuickSeconds = 15, kMostSeconds = 24 * 3600;
constexpr std::int64_t kLargestMessage = std::int64_t{1} << 30;

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
      return user_error(fmt::format("{} is not tuned", name), "all_reduce, all_gather and their like are");
    }
    kinds.push_back(kind);
  }
  if (kinds.empty())
    kinds = {Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather, Kind::all_to_all, Kind::broadcast};
  return kinds;
}

Result<TunePlan> plan_of(const Tune& request, const std::string& transport) {
  TunePlan plan;
  const auto found = comm::find_transport(transport);
  if (!found) return user_error(fmt::format("unknown transport: {}", transport), "shm, tcp or mpi");
  plan.transport = *found;
  WEFT_TRY(kinds, kinds_of(request));
  plan.kinds = std::move(kinds);
  WEFT_TRY(powers, parse_sizes(request.sizes));
  if (powers.back() > kLargestMessage) {
    return user_error(fmt::format("sizes go up to {}, found {}", print_bytes(kLargestMessage),
                                  print_bytes(static_cast<double>(powers.back()))));
  }
  const std::size_t step = request.quick ? 4 : 2;  // of powers of two
  for (std::size_t i = 0; i < powers.size(); ++i) {
    if (i % step == 0 || i + 1 == powers.size()) {
      plan.sizes.push_back(powers[i]);
    } else if (request.check && i % step == step / 2) {
      plan.between.push_back(powers[i]);
    }
  }
  plan.time = std::chrono::seconds(seconds_of(request));
  plan.on_note = request.on_note;
  return plan;
}

// Several groups' results as one.
void add(Tuned& all, Tuned one) {
  for (const auto& [setting, candidates] : one.table.settings()) all.table.set(setting, candidates);
  for (const auto& [setting, candidates] : one.between.settings()) all.between.set(setting, candidates);
  all.measured += one.measured;
  all.skipped += one.skipped;
  all.times += one.times;
  all.disturbed += one.disturbed;
  all.dropped.insert(all.dropped.end(), one.dropped.begin(), one.dropped.end());
}

Status keep(const Tune& request, const Tuned& tuned) {
  if (request.statistics == "none") return {};
  std::vector<cost::CollectiveTime> times;
  for (const auto& [setting, candidates] : tuned.table.settings())
    for (const comm::Candidate& candidate : candidates)
      for (const comm::TimePoint& time : candidate.times)
        times.push_back({setting.kind, setting.ranks, setting.hosts, setting.transport, setting.allocated,
                         candidate.name, time.bytes, time.seconds, cost::seconds_since_1970()});
  WEFT_TRY(statistics, cost::Statistics::open(request.statistics, cost::Access::write));
  return statistics.add(times);
}

// What a size of a setting comes to: the choice and who is next.
struct Row {
  const comm::Setting* setting;
  std::int64_t bytes;
  comm::Choice best, next;
};

std::vector<Row> rows_of(const Tuned& tuned) {
  std::vector<Row> rows;
  for (const auto& [setting, candidates] : tuned.table.settings()) {
    std::map<std::int64_t, std::vector<std::string>> names;
    for (const comm::Candidate& candidate : candidates)
      for (const comm::TimePoint& time : candidate.times) names[time.bytes].push_back(candidate.name);
    for (auto& [bytes, allowed] : names) {
      Row row{&setting, bytes, tuned.table.choose(setting, bytes, allowed), {}};
      std::erase(allowed, row.best.algorithm);
      row.next = tuned.table.choose(setting, bytes, allowed);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

std::string_view buffers(const comm::Setting& setting) { return setting.allocated ? "allocated" : "private"; }

std::string to_text(const Tuned& tuned, bool check) {
  using explain::Align;
  explain::Table table({{"collective"},
                        {"ranks", Align::right},
                        {"transport"},
                        {"buffers"},
                        {"size", Align::right},
                        {"chosen"},
                        {"time", Align::right},
                        {"next"},
                        {"time", Align::right}});
  for (const Row& row : rows_of(tuned)) {
    const bool alone = row.next.algorithm.empty();
    table.add({std::string(collective::name(row.setting->kind)), fmt::to_string(row.setting->ranks),
               row.setting->transport, std::string(buffers(*row.setting)),
               print_bytes(static_cast<double>(row.bytes)), row.best.algorithm,
               print_seconds(row.best.seconds), row.next.algorithm,
               alone ? "" : print_seconds(row.next.seconds)});
  }
  std::string text = table.print();
  if (check) {
    const TuneCheck found = check_predictions(tuned.table, tuned.between);
    text += fmt::format(
        "\npredictions at {} times between: median error {:.1f} %\n"
        "choices at {} sizes between: slower than the best by {:.1f} % in the median, {:.1f} % on average, "
        "{:.1f} % at worst\n",
        found.predictions, 100 * found.median_error, found.choices, 100 * found.median_cost,
        100 * found.mean_cost, 100 * found.worst_cost);
  }
  for (const std::string& dropped : tuned.dropped) text += fmt::format("left out: {}\n", dropped);
  if (4 * tuned.disturbed > tuned.times)
    text += fmt::format("other processes disturbed {} of {} times: tune again when the machine is idle\n",
                        tuned.disturbed, tuned.times);
  if (tuned.skipped > 0)
    text += fmt::format("no time for {} of {} sizes: --seconds gives more\n", tuned.skipped,
                        tuned.skipped + tuned.measured);
  return text;
}

std::string to_json(const Tuned& tuned, bool check) {
  Json json;
  json["rows"] = Json::array();
  for (const Row& row : rows_of(tuned)) {
    Json one{{"collective", collective::name(row.setting->kind)},
             {"ranks", row.setting->ranks},
             {"hosts", row.setting->hosts},
             {"transport", row.setting->transport},
             {"buffers", buffers(*row.setting)},
             {"bytes", row.bytes},
             {"algorithm", row.best.algorithm},
             {"seconds", row.best.seconds}};
    if (!row.next.algorithm.empty()) {
      one["next"] = row.next.algorithm;
      one["next_seconds"] = row.next.seconds;
    }
    json["rows"].push_back(std::move(one));
  }
  if (check) {
    const TuneCheck found = check_predictions(tuned.table, tuned.between);
    json["check"] = {{"predictions", found.predictions}, {"median_error", found.median_error},
                     {"choices", found.choices},         {"median_cost", found.median_cost},
                     {"mean_cost", found.mean_cost},     {"worst_cost", found.worst_cost}};
  }
  json["times"] = tuned.times;
  json["disturbed"] = tuned.disturbed;
  json["skipped"] = tuned.skipped;
  json["dropped"] = tuned.dropped;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// One rank's part: all transports, one after the other, in the job that there is.
Result<Tuned> take_part(const std::shared_ptr<transport::Job>& job, const Tune& request) {
  std::vector<std::string> transports = request.transports;
  if (transports.empty()) transports.emplace_back("automatic");
  Tuned all;
  for (const std::string& transport : transports) {
    WEFT_TRY(plan, plan_of(request, transport));
    plan.time /= static_cast<std::int64_t>(transports.size());
    if (job->rank() != 0) plan.on_note = {};
    WEFT_TRY(tuned, tune_group(job, plan));
    add(all, std::move(tuned));
  }
  return all;
}

Result<Tuned> start_ranks(const Tune& request) {
  std::vector<std::int32_t> ranks = request.ranks;
  if (ranks.empty()) ranks = {2, 4, 8};
  std::vector<std::string> transports = request.transports;
  if (transports.empty()) transports = {"shm", "tcp"};
  const std::int32_t runs = static_cast<std::int32_t>(ranks.size() * transports.size());
  const std::int32_t seconds = std::max(seconds_of(request) / runs, 1);
  Tuned all;
  for (const std::int32_t each : ranks)
    for (const std::string& transport : transports) {
      OwnRanks own{.command = "tune",
                   .arguments = {"--transport", transport, "--sizes", request.sizes, "--seconds",
                                 fmt::to_string(seconds), "--statistics", "none"},
                   .on_note = request.on_note};
      own.ranks = each;
      // Sizes that were begun are ended, so that it may take longer than it should; but not for ever.
      own.timeout = std::chrono::seconds(120 + 4 * seconds);
      if (!request.collectives.empty())
        own.arguments.insert(own.arguments.end(),
                             {"--collectives", fmt::format("{}", fmt::join(request.collectives, ","))});
      if (request.quick) own.arguments.emplace_back("--quick");
      if (request.check) own.arguments.emplace_back("--check");
      WEFT_TRY(text, run_own_ranks(own));
      WEFT_TRY(tuned, parse_tuned(text));
      add(all, std::move(tuned));
    }
  return all;
}

Status check_request(const Tune& request) {
  for (const std::int32_t ranks : request.ranks)
    if (ranks < 2 || ranks > kMostRanks)
      return user_error(fmt::format("expected 2 to {} ranks, found {}", kMostRanks, ranks));
  if (request.seconds < 0 || request.seconds > kMostSeconds)
    return user_error(fmt::format("expected 1 to {} seconds, found {}", kMostSeconds, request.seconds));
  // What is wrong is said before any rank is started.
  for (const std::string& transport : request.transports)
    WEFT_TRY_STATUS([&]() -> Status {
      WEFT_TRY(plan, plan_of(request, transport));
      return {};
    }());
  WEFT_TRY(plan, plan_of(request, "shm"));
  return {};
}

Result<std::string> finish(const Tune& request, const Tuned& tuned) {
  std::string text =
      request.format == Format::json ? to_json(tuned, request.check) : to_text(tuned, request.check);
  if (const Status kept = keep(request, tuned); !kept.ok() && request.on_note)
    request.on_note(fmt::format("the times were not kept: {}", kept.error().message));
  return text;
}

Result<std::string> answer(const Tune& request) {
  WEFT_TRY_STATUS(check_request(request));
  const Part part = part_in("tune", !request.ranks.empty());
  if (part == Part::starts_ranks) {
    WEFT_TRY(tuned, start_ranks(request));
    return finish(request, tuned);
  }
  WEFT_TRY(job, join_from_environment());
  WEFT_TRY(tuned, take_part(job, request));
  const bool first = job->rank() == 0;
  job->leave();
  if (!first) return std::string();
  return part == Part::own_rank ? print(tuned) : finish(request, tuned);
}

}  // namespace

Reply run(const Tune& request) { return to_reply(answer(request)); }

}  // namespace weft::session
