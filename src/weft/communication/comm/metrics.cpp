#include "weft/communication/comm/metrics.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "weft/base/number.h"
#include "weft/communication/comm/flight_recorder.h"

namespace weft::comm {
namespace {

constexpr std::string_view kTalliesLine = "tallies 1\n";

struct Family {
  std::string_view name, help;
  std::string (*value)(const Tally&);
};
constexpr Family kFamilies[] = {
    {"weft_comm_calls_total", "Completed calls of this rank.",
     [](const Tally& tally) { return fmt::to_string(tally.calls); }},
    {"weft_comm_bytes_total", "Message bytes of completed calls (the larger buffer of each).",
     [](const Tally& tally) { return fmt::to_string(tally.bytes); }},
    {"weft_comm_seconds_total", "Time spent in those calls, from start to end.",
     [](const Tally& tally) { return fmt::format("{:.9f}", tally.seconds); }},
    {"weft_comm_waits_total", "Calls without progress for some milliseconds.",
     [](const Tally& tally) { return fmt::to_string(tally.waits); }},
    {"weft_comm_faults_total", "Calls that failed.",
     [](const Tally& tally) { return fmt::to_string(tally.faults); }},
};

bool is_used(const Tally& tally) { return tally.calls != 0 || tally.faults != 0; }

std::string gauge(std::string_view name, std::string_view help, std::int32_t rank, std::int32_t value) {
  return fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n{0}{{rank=\"{2}\"}} {3}\n", name, help, rank, value);
}

}  // namespace

Tally& Tally::operator+=(const Tally& other) {
  calls += other.calls;
  bytes += other.bytes;
  waits += other.waits;
  faults += other.faults;
  seconds += other.seconds;
  return *this;
}

Tallies& operator+=(Tallies& all, const Tallies& more) {
  for (std::size_t kind = 0; kind < kKinds; ++kind) all[kind] += more[kind];
  return all;
}

Tallies Metrics::read() const {
  constexpr auto kPlainly = std::memory_order_relaxed;
  Tallies tallies;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    const Counters& from = counters_[kind];
    const std::uint64_t elapsed = from.ticks.load(kPlainly);
    tallies[kind] = {from.calls.load(kPlainly), from.bytes.load(kPlainly), from.waits.load(kPlainly),
                     from.faults.load(kPlainly),
                     elapsed == 0 ? 0 : static_cast<double>(elapsed) / ticks_per_second()};
  }
  return tallies;
}

std::string print_prometheus(const RankMetrics& metrics) {
  std::string text = gauge("weft_comm_ranks", "Ranks of the job.", metrics.rank, metrics.ranks) +
                     gauge("weft_comm_dead_ranks", "Failed ranks of the job.", metrics.rank, metrics.dead);
  for (const Family& family : kFamilies) {
    text += fmt::format("# HELP {0} {1}\n# TYPE {0} counter\n", family.name, family.help);
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      const Tally& tally = metrics.tallies[kind];
      if (is_used(tally))
        text += fmt::format("{}{{rank=\"{}\",collective=\"{}\"}} {}\n", family.name, metrics.rank,
                            collective::name(static_cast<Kind>(kind)), family.value(tally));
    }
  }
  return text;
}

std::string print_tallies(const Tallies& tallies) {
  std::string text(kTalliesLine);
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    const Tally& tally = tallies[kind];
    if (is_used(tally))
      text += fmt::format("{} {} {} {} {} {:.9f}\n", collective::name(static_cast<Kind>(kind)), tally.calls,
                          tally.bytes, tally.waits, tally.faults, tally.seconds);
  }
  return text;
}

Result<Tallies> parse_tallies(std::string_view text) {
  const auto wrong = [] { return user_error("cannot read the counters of a rank"); };
  if (!text.starts_with(kTalliesLine)) return wrong();
  text.remove_prefix(kTalliesLine.size());
  Tallies tallies;
  while (!text.empty()) {
    const std::string line(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    std::array<std::string_view, 6> words;
    std::string_view rest = line;
    for (std::string_view& word : words) {
      word = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    }
    const auto kind = collective::find_kind(words[0]);
    const auto calls = read_number<std::uint64_t>(words[1]), bytes = read_number<std::uint64_t>(words[2]),
               waits = read_number<std::uint64_t>(words[3]), faults = read_number<std::uint64_t>(words[4]);
    const auto seconds = read_number(words[5], 0.0);
    if (!kind || !calls || !bytes || !waits || !faults || !seconds || !rest.empty()) return wrong();
    tallies[static_cast<std::size_t>(*kind)] = {*calls, *bytes, *waits, *faults, *seconds};
  }
  return tallies;
}

}  // namespace weft::comm
