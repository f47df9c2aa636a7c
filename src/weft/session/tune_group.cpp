#include "weft/session/tune_group.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "weft/cost/statistics.h"
#include "weft/session/tune_rank.h"

namespace weft::session {
namespace {

using comm::Candidate;
using comm::Setting;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kTopicGroup = 0x74756e65;    // "tune"
constexpr std::size_t kCoarse = 3;                   // every third size is measured for all candidates
constexpr double kNear = 3;                          // times the best: may still win between coarse sizes
constexpr std::int64_t kBandwidthBound = 256 << 10;  // from here on the order of candidates hardly changes
constexpr std::int64_t kLarge = 16 << 20;            // one call takes long and is steady
constexpr double kBatchSeconds = 2e-3;
constexpr std::int32_t kFirstBatches = 3, kMostIterations = 200;
constexpr std::string_view kDirect = "direct";  // what is used without any measurement: never left out

// What rank 0 knows of one setting while it is measured.
struct Progress {
  Setting setting;
  std::map<std::string, Candidate> candidates, between;
  std::set<std::string> failed;
};

std::vector<Candidate> values_of(const std::map<std::string, Candidate>& candidates) {
  std::vector<Candidate> values;
  for (const auto& [name, candidate] : candidates)
    if (!candidate.times.empty()) values.push_back(candidate);
  return values;
}

// Coarse sizes ascending, then the others.
std::vector<std::int64_t> in_order(const std::vector<std::int64_t>& sizes, std::size_t& coarse) {
  std::vector<std::int64_t> ordered, fine;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    (i % kCoarse == 0 || i + 1 == sizes.size() ? ordered : fine).push_back(sizes[i]);
  coarse = ordered.size();
  ordered.insert(ordered.end(), fine.begin(), fine.end());
  return ordered;
}

// Who is worth measuring at this size.
std::vector<std::string> contenders(const Progress& progress, std::int64_t bytes, bool coarse) {
  std::vector<std::string> names;
  double best = 0;
  const auto known = [&](const std::string& name) -> const Candidate* {
    const auto found = progress.candidates.find(name);
    return found != progress.candidates.end() && !found->second.times.empty() ? &found->second : nullptr;
  };
  const auto all = comm::candidates_for(progress.setting, bytes);
  for (const std::string& name : all)
    if (const Candidate* candidate = known(name)) {
      const double seconds = candidate->seconds(bytes);
      if (best == 0 || seconds < best) best = seconds;
    }
  for (const std::string& name : all) {
    if (progress.failed.contains(name)) continue;
    const Candidate* candidate = known(name);
    const bool judged = candidate != nullptr && (!coarse || candidate->times.back().bytes >= kBandwidthBound);
    if (candidate == nullptr && !coarse && best > 0) continue;  // was not worth a coarse size
    if (!judged || name == kDirect || candidate->seconds(bytes) <= kNear * best) names.push_back(name);
  }
  return names;
}

struct Judgement {
  double seconds = 0;      // a call
  std::string trouble;     // why there is no time
  bool disturbed = false;  // half of the batches took more than twice as long
};

// A batch is over when its slowest rank is. Of the batches the lower quartile counts: what other processes
// take from the machine only ever makes them slower.
std::vector<Judgement> judge(const TuneOrder& order, const std::vector<TuneTimes>& ranks) {
  std::vector<Judgement> judgements(order.turns.size());
  for (std::size_t turn = 0; turn < judgements.size(); ++turn) {
    Judgement& judgement = judgements[turn];
    std::vector<double> slowest;
    for (const TuneTimes& rank : ranks) {
      const std::vector<double>& batches = rank.batches[turn];
      if (judgement.trouble.empty()) judgement.trouble = rank.troubles[turn];
      slowest.resize(std::max(slowest.size(), batches.size()));
      for (std::size_t i = 0; i < batches.size(); ++i) slowest[i] = std::max(slowest[i], batches[i]);
    }
    if (slowest.empty() && judgement.trouble.empty()) judgement.trouble = "nobody measured it";
    if (!judgement.trouble.empty()) continue;
    std::ranges::sort(slowest);
    judgement.seconds = std::max(slowest[slowest.size() / 4], 1e-9);
    judgement.disturbed = slowest[slowest.size() / 2] > 2 * judgement.seconds;
  }
  return judgements;
}

class Conductor {
 public:
  Conductor(transport::Job& job, TuneRank& rank, const TunePlan& plan) : job_(job), rank_(rank), plan_(plan) {
    for (std::int32_t each = 0; each < job.ranks(); ++each) everyone_.push_back(each);
  }

  // Rank 0.
  Result<Tuned> conduct();
  // The others, until they are told that it is over.
  Status follow();

 private:
  Result<std::vector<transport::Parcel>> exchange(std::string mine) {
    return job_.exchange(everyone_, {kTopicGroup, exchanges_++}, {std::move(mine), -1});
  }
  Result<std::vector<Judgement>> ask(const TuneOrder& order);
  Status measure_setting(const Setting& setting, Clock::time_point deadline);
  Status measure_size(Progress& progress, std::int64_t bytes, bool coarse, bool between);

  transport::Job& job_;
  TuneRank& rank_;
  const TunePlan& plan_;
  std::vector<std::int32_t> everyone_;
  std::uint64_t exchanges_ = 0;
  Tuned tuned_;
};

Result<std::vector<Judgement>> Conductor::ask(const TuneOrder& order) {
  WEFT_TRY(told, exchange(print(order)));
  const TuneTimes mine = order.end ? TuneTimes{} : rank_.measure(order);
  WEFT_TRY(answers, exchange(print(mine)));
  std::vector<TuneTimes> all;
  for (const transport::Parcel& answer : answers) {
    WEFT_TRY(times, parse_tune_times(answer.bytes));
    if (times.batches.size() != order.turns.size())
      return world_error("a rank measured something else than asked");
    all.push_back(std::move(times));
  }
  return judge(order, all);
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

Status Conductor::measure_size(Progress& progress, std::int64_t bytes, bool coarse, bool between) {
  TuneOrder order{.kind = progress.setting.kind,
                  .bytes = bytes,
                  .allocated = progress.setting.allocated,
                  .batches = bytes < kLarge ? std::min(kFirstBatches, plan_.batches) : 1};
  for (const std::string& name : contenders(progress, bytes, coarse)) order.turns.push_back({name, 1});
  if (order.turns.empty()) return {};
  WEFT_TRY(first, ask(order));
  auto& kept = between ? progress.between : progress.candidates;
  const std::string source = fmt::format("measured {}", cost::print_date(cost::seconds_since_1970()));
  const auto keep = [&](const std::string& name, double seconds) {
    Candidate& candidate = kept[name];
    candidate.name = name;
    candidate.source = source;
    std::erase_if(candidate.times, [&](const comm::TimePoint& time) { return time.bytes == bytes; });
    const auto place = std::ranges::upper_bound(candidate.times, bytes, {}, &comm::TimePoint::bytes);
    candidate.times.insert(place, {bytes, seconds});
  };
  double best = 0;
  for (std::size_t turn = 0; turn < order.turns.size(); ++turn) {
    const std::string& name = order.turns[turn].algorithm;
    if (!first[turn].trouble.empty()) {
      progress.failed.insert(name);
      tuned_.dropped.push_back(
          fmt::format("{} of {}: {}", name, collective::name(order.kind), first[turn].trouble));
      continue;
    }
    keep(name, first[turn].seconds);
    if (best == 0 || first[turn].seconds < best) best = first[turn].seconds;
  }
  // One call is no measurement; but of those far behind it says enough.
  TuneOrder again = order;
  again.turns.clear();
  again.batches = plan_.batches;
  for (std::size_t turn = 0; turn < order.turns.size(); ++turn) {
    const double seconds = first[turn].seconds;
    if (!first[turn].trouble.empty() ||
        (seconds > 2 * kNear * best && order.turns[turn].algorithm != kDirect))
      continue;
    const double fit = std::clamp(kBatchSeconds / seconds, 1.0, double{kMostIterations});
    again.turns.push_back({order.turns[turn].algorithm, static_cast<std::int32_t>(fit)});
  }
  if (again.turns.empty()) return {};
  WEFT_TRY(second, ask(again));
  for (std::size_t turn = 0; turn < again.turns.size(); ++turn)
    if (second[turn].trouble.empty()) {
      keep(again.turns[turn].algorithm, second[turn].seconds);
      ++tuned_.times;
      if (second[turn].disturbed) ++tuned_.disturbed;
    }
  return {};
}

Status Conductor::measure_setting(const Setting& setting, Clock::time_point deadline) {
  if (plan_.on_note) {
    plan_.on_note(fmt::format("{} of {} ranks over {}{}", collective::name(setting.kind), setting.ranks,
                              setting.transport, setting.allocated ? ", allocated buffers" : ""));
  }
  Progress progress{.setting = setting, .candidates = {}, .between = {}, .failed = {}};
  const auto start = Clock::now();
  const auto time = std::max<Clock::duration>(deadline - start, std::chrono::milliseconds(1));
  const auto enough = start + (plan_.between.empty() ? time : time * 6 / 10);  // the rest is for the check
  std::size_t coarse = 0, at = 0;
  for (const std::int64_t bytes : in_order(plan_.sizes, coarse)) {
    const bool is_coarse = at++ < coarse;
    // Coarse sizes are worth twice the time: without them there is no line to draw.
    if (at > 2 && Clock::now() > (is_coarse ? start + 2 * time : enough)) {
      ++tuned_.skipped;
      continue;
    }
    WEFT_TRY_STATUS(measure_size(progress, bytes, is_coarse, false));
    ++tuned_.measured;
  }
  for (const std::int64_t bytes : plan_.between)
    if (Clock::now() < start + 2 * time) WEFT_TRY_STATUS(measure_size(progress, bytes, false, true));
  tuned_.table.set(setting, values_of(progress.candidates));
  if (!plan_.between.empty()) tuned_.between.set(setting, values_of(progress.between));
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
      // Only ranks that share memory have buffers that others reach.
      if (!allocated || setting.transport == "shm") settings.push_back(setting);
    }
  const auto start = Clock::now();
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const auto share =
        plan_.time * static_cast<std::int64_t>(i + 1) / static_cast<std::int64_t>(settings.size());
    WEFT_TRY_STATUS(measure_setting(settings[i], start + share));
  }
  WEFT_TRY(over, ask({.end = true}));
  return std::move(tuned_);
}

}  // namespace

Result<Tuned> tune_group(const std::shared_ptr<transport::Job>& job, const TunePlan& plan) {
  WEFT_TRY(rank, TuneRank::open(job, plan.transport));
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
  return text + "table\n" + tuned.table.print() + "between\n" + tuned.between.print() + "end\n";
}

Result<Tuned> parse_tuned(std::string_view text) {
  const auto wrong = [] { return world_error("what the ranks measured cannot be read"); };
  const std::size_t table = text.find("\ntable\n"), between = text.find("\nbetween\n");
  if (!text.starts_with("tuned\t") || !text.ends_with("\nend\n") || table == std::string_view::npos ||
      between == std::string_view::npos || between < table)
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
  constexpr std::string_view kDropped = "\ndropped\t";
  for (std::size_t at = head.find(kDropped); at != std::string_view::npos; at = head.find(kDropped, at + 1)) {
    const std::string_view rest = head.substr(at + kDropped.size());
    tuned.dropped.emplace_back(rest.substr(0, rest.find('\n')));
  }
  WEFT_TRY(parsed_table, comm::ChoiceTable::parse(text.substr(table + 7, between + 1 - (table + 7))));
  WEFT_TRY(parsed_between,
           comm::ChoiceTable::parse(text.substr(between + 9, text.size() - 4 - (between + 9))));
  tuned.table = std::move(parsed_table);
  tuned.between = std::move(parsed_between);
  return tuned;
}

}  // namespace weft::session
