#include "weft/runtime/measure/tune_group.h"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>

#include "weft/predict/cost/statistics.h"
#include "weft/runtime/measure/tune_rank.h"
#include "weft/runtime/measure/tune_rounds.h"

namespace weft::measure {
namespace {

using comm::Setting;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kTuneTopicGroup = 0x74756e65;  // "tune"
constexpr std::int32_t kFewestRounds = 2;              // after round 0, regardless of time
constexpr std::int32_t kMostOverrun = 2;               // times a setting's share; beyond it sizes are skipped
constexpr std::int64_t kTypicalBytes = 64 << 10;

class Conductor {
 public:
  Conductor(transport::Job& job, TuneRank& rank, const TunePlan& plan) : job_(job), rank_(rank), plan_(plan) {
    for (std::int32_t each = 0; each < job.ranks(); ++each) everyone_.push_back(each);
  }

  // Runs on rank 0.
  Result<Tuned> conduct();
  // Runs on the other ranks until rank 0 ends it.
  Status follow();

 private:
  Result<std::vector<transport::Parcel>> exchange(std::string mine) {
    return job_.exchange(everyone_, {kTuneTopicGroup, exchanges_++}, {std::move(mine), -1});
  }
  // Sends an order to all ranks and returns their measurements.
  Result<std::vector<TuneTimes>> ask(const TuneOrder& order);
  Status measure_setting(const Setting& setting, Clock::duration time);

  transport::Job& job_;
  TuneRank& rank_;
  const TunePlan& plan_;
  std::vector<std::int32_t> everyone_;
  std::uint64_t exchanges_ = 0;
  Tuned tuned_;
};

Result<std::vector<TuneTimes>> Conductor::ask(const TuneOrder& order) {
  WEFT_TRY(told, exchange(print(order)));
  const TuneTimes mine = order.end ? TuneTimes{} : rank_.measure(order);
  WEFT_TRY(answers, exchange(print(mine)));
  std::vector<TuneTimes> all;
  for (const transport::Parcel& answer : answers) {
    WEFT_TRY(times, parse_tune_times(answer.bytes));
    if (times.batches.size() != order.turns.size())
      return environment_error("a rank measured something other than requested");
    all.push_back(std::move(times));
  }
  return all;
}

Status Conductor::follow() {
  for (;;) {
    WEFT_TRY(told, exchange(""));
    WEFT_TRY(order, parse_tune_order(told.front().bytes));
    const TuneTimes times = order.end ? TuneTimes{} : rank_.measure(order);
    WEFT_TRY(answers, exchange(print(times)));
    if (order.end) return {};
  }
}

Status Conductor::measure_setting(const Setting& setting, Clock::duration time) {
  if (plan_.on_note) {
    plan_.on_note(fmt::format("{} of {} ranks over {}{}", collective::name(setting.kind), setting.ranks,
                              setting.transport, setting.allocated ? ", allocated buffers" : ""));
  }
  TuneRounds rounds(setting, plan_.chosen_from ? TuneRounds::Purpose::check : TuneRounds::Purpose::predict);
  const auto start = Clock::now();
  std::vector<std::int64_t> begun;
  for (std::int32_t round = 0; round <= plan_.rounds; ++round) {
    const auto round_start = Clock::now();
    for (const std::int64_t bytes : round == 0 ? plan_.sizes : begun) {
      // Small sizes are fast; large ones are skipped if they would exceed the time by themselves.
      if (round == 0 && begun.size() >= 2 && Clock::now() > start + kMostOverrun * time) break;
      if (round == 0) begun.push_back(bytes);
      const TuneOrder order = rounds.order(bytes, round);
      if (order.turns.empty()) continue;
      WEFT_TRY(answers, ask(order));
      rounds.add(order, round, answers);
    }
    const auto now = Clock::now();
    if (round >= kFewestRounds && now + (now - round_start) > start + time) break;
  }
  tuned_.measured += static_cast<std::int64_t>(begun.size());
  tuned_.skipped += static_cast<std::int64_t>(plan_.sizes.size() - begun.size());
  tuned_.times += rounds.times();
  tuned_.disturbed += rounds.disturbed();
  tuned_.dropped.insert(tuned_.dropped.end(), rounds.dropped().begin(), rounds.dropped().end());
  const std::string today = cost::print_date(cost::seconds_since_1970());
  tuned_.table.set(setting, rounds.candidates(fmt::format("measured {}", today)));
  return {};
}

Result<Tuned> Conductor::conduct() {
  std::set<std::string> hosts;
  for (const std::int32_t each : everyone_) hosts.insert(job_.member(each).host);
  std::vector<Setting> settings;
  for (const bool allocated : {false, true})
    for (const comm::Kind kind : plan_.kinds) {
      const Setting setting{kind, job_.ranks(), static_cast<std::int32_t>(hosts.size()),
                            std::string(rank_.transport()), allocated};
      // Allocated buffers only differ for ranks that share memory.
      if (!allocated || setting.transport == "shm") settings.push_back(setting);
    }
  // Each setting gets a share of the remaining time in proportion to its candidates. It gets at
  // least half of its original share, so that overruns of earlier settings do not starve later
  // ones.
  const auto weight = [](const Setting& setting) {
    return static_cast<double>(comm::candidates_for(setting, kTypicalBytes).size());
  };
  double weights = 0;
  for (const Setting& setting : settings) weights += weight(setting);
  const std::chrono::duration<double> all = plan_.time;
  const auto end = Clock::now() + plan_.time;
  double weights_left = weights;
  for (const Setting& setting : settings) {
    const std::chrono::duration<double> left = end - Clock::now();
    const auto share = std::max(left * weight(setting) / weights_left, all * weight(setting) / weights / 2);
    WEFT_TRY_STATUS(measure_setting(setting, std::chrono::duration_cast<Clock::duration>(share)));
    weights_left -= weight(setting);
  }
  WEFT_TRY(over, ask({.end = true}));
  return std::move(tuned_);
}

}  // namespace

Result<Tuned> tune_group(const std::shared_ptr<transport::Job>& job, const TunePlan& plan) {
  WEFT_TRY(rank, TuneRank::open(job, plan.transport, plan.chosen_from.value_or("none")));
  Conductor conductor(*job, *rank, plan);
  if (job->rank() == 0) return conductor.conduct();
  WEFT_TRY_STATUS(conductor.follow());
  return Tuned();
}

std::string print(const Tuned& tuned) {
  std::string text =
      fmt::format("tuned\t{}\t{}\t{}\t{}\n", tuned.measured, tuned.skipped, tuned.times, tuned.disturbed);
  for (std::string dropped : tuned.dropped) {
    std::ranges::replace(dropped, '\n', ' ');
    text += fmt::format("dropped\t{}\n", dropped);
  }
  return text + "table\n" + tuned.table.print() + "end\n";
}

Result<Tuned> parse_tuned(std::string_view text) {
  const auto wrong = [] { return environment_error("cannot read the measurements of the ranks"); };
  const std::size_t table = text.find("\ntable\n");
  if (!text.starts_with("tuned\t") || !text.ends_with("\nend\n") || table == std::string_view::npos)
    return wrong();
  Tuned tuned;
  std::string_view head = text.substr(6, table + 1 - 6);
  const char* const end = head.data() + head.size();
  const char* at_number = head.data();
  for (std::int64_t* number : {&tuned.measured, &tuned.skipped, &tuned.times, &tuned.disturbed}) {
    const auto read = std::from_chars(at_number, end, *number);
    if (read.ec != std::errc{} || read.ptr == end || (*read.ptr != '\t' && *read.ptr != '\n')) return wrong();
    at_number = read.ptr + 1;
  }
  constexpr std::string_view kDroppedLine = "\ndropped\t";
  for (std::size_t at = head.find(kDroppedLine); at != std::string_view::npos;
       at = head.find(kDroppedLine, at + 1)) {
    const std::string_view rest = head.substr(at + kDroppedLine.size());
    tuned.dropped.emplace_back(rest.substr(0, rest.find('\n')));
  }
  WEFT_TRY(parsed, comm::ChoiceTable::parse(text.substr(table + 7, text.size() - 4 - (table + 7))));
  tuned.table = std::move(parsed);
  return tuned;
}

}  // namespace weft::measure
