// weft/communication/comm/choice/choice.h -- which algorithm runs a call: the model's answer, from what was measured here.
//
//   seconds(algorithm, bytes) = a line in log bytes, log seconds through measured sizes       (weft tune)
//                             or alpha * steps + beta * wire bytes + gamma * reduced bytes     (calibrated)
//
// Below the smallest measured size the time stays the same: latency rules. Above the largest it grows with
// the bytes: bandwidth rules. Where some candidates were measured, the others do not compete. A measurement
// of another number of ranks is scaled as the formula says.
//
// All ranks of a group hold the same table (rank 0's), so all choose alike.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/comm/choice/candidates.h"
#include "weft/predict/sim/collective/fit.h"

namespace weft::comm {

using TimePoint = sim::Measurement;  // bytes as message_bytes() counts, and seconds

// One algorithm's times. `name` is a direct algorithm ("direct one-shot") or a shipped or installed program
// with its parameters, ranks and root left out ("all_reduce_ring(channels=2)").
struct Candidate {
  std::string name;
  std::vector<TimePoint> times = {};  // by size; empty: only the calibrated formula speaks for it
  std::string source = {};            // "measured 2026-11-15", "calibrated", "default figures"
  Formula formula = {};

  double seconds(std::int64_t bytes) const;

  std::int64_t largest() const { return times.empty() ? 0 : times.back().bytes; }
  // Whether larger sizes were measured of others but not of this one: it was far behind.
  bool left_out(std::int64_t bytes, std::int64_t largest_of_all) const;
};

struct Choice {
  std::string algorithm;  // empty: nothing was allowed
  double seconds = 0;
  std::string why;  // "measured 2026-11-15: 12.1 us; next all_reduce_ring 19.4 us"
  std::optional<bool> in_place =
      {};  // of a group: whether a direct way uses allocated buffers where they are
};

class ChoiceTable {
 public:
  // What ships: figures of a machine like any other, so that the first call is not a bad one.
  static ChoiceTable defaults();

  void set(const Setting& setting, std::vector<Candidate> candidates);
  void set_figures(const std::string& transport, Figures figures);
  const Figures& figures_of(std::string_view transport) const;

  // Forgets what a group of so many ranks over this transport has no use for, so that the table is short to
  // hand round: other transports, and all numbers of ranks but its own or else the nearest below and above.
  void keep_only(std::string_view transport, std::int32_t ranks);

  // Of the candidates whose names are in `allowed`, measured or not. Deterministic. Takes up to a millisecond
  // where nothing was measured: callers keep the answer.
  Choice choose(const Setting& setting, std::int64_t bytes, std::span<const std::string> allowed) const;

  // What a group does, whose ranks know their own buffers but not the others', and must all choose alike. So
  // one algorithm is chosen for private and allocated buffers together, the one whose two times have the
  // least product. Direct ways are told apart where they were measured among so many ranks; elsewhere
  // "direct" chooses by size and by trial. `setting.allocated` does not matter.
  Choice choose_for_group(const Setting& setting, std::int64_t bytes) const;

  // What the table expects of one algorithm.
  Candidate expect(const Setting& setting, std::string_view algorithm) const;

  const std::map<Setting, std::vector<Candidate>>& settings() const { return table_; }

  // All of it as text and back, so that rank 0 can hand it to the others.
  std::string print() const;
  static Result<ChoiceTable> parse(std::string_view text);

 private:
  const Candidate* find(const Setting& setting, std::string_view algorithm) const;

  std::map<Setting, std::vector<Candidate>> table_;
  std::map<std::string, Figures, std::less<>> figures_;  // by transport
};

// The defaults, and over them what the statistics database knows of this machine. `statistics` as in Options:
// empty is the user's own, "none" no file. A database that cannot be read is no reason not to communicate:
// `trouble` says why it was not.
struct LoadedChoices {
  ChoiceTable table;
  std::string trouble;
};
LoadedChoices load_choices(const std::string& statistics);

}  // namespace weft::comm
