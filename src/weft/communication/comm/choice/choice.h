// weft/communication/comm/choice/choice.h -- chooses the algorithm of a call by a cost model of
// measured times.
//
//   seconds(algorithm, bytes) = a line in log bytes, log seconds through measured sizes       (weft tune)
//                             or alpha * steps + beta * wire bytes + gamma * reduced bytes     (calibrated)
//
// Below the smallest measured size the time is constant: latency dominates. Above the largest it
// grows with the bytes: bandwidth dominates. If some candidates were measured, the others do not
// compete. A measurement for another number of ranks is scaled by the formula.
//
// All ranks of a group hold the same table (rank 0's), so all make the same choice.
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

// Times of one algorithm. `name` is a direct algorithm ("direct one-shot") or a shipped or
// installed program with its parameters, except ranks and root ("all_reduce_ring(channels=2)").
struct Candidate {
  std::string name;
  std::vector<TimePoint> times = {};  // by size; empty: only the formula applies
  std::string source = {};            // "measured 2026-11-15", "calibrated", "default figures"
  Formula formula = {};

  double seconds(std::int64_t bytes) const;

  std::int64_t largest() const { return times.empty() ? 0 : times.back().bytes; }
  // Whether others were measured at larger sizes but this one was not, since it was far behind.
  bool left_out(std::int64_t bytes, std::int64_t largest_of_all) const;
};

struct Choice {
  std::string algorithm;  // empty: no algorithm was allowed
  double seconds = 0;
  std::string why;  // "measured 2026-11-15: 12.1 us; next all_reduce_ring 19.4 us"
  std::optional<bool> in_place =
      {};  // group choice: whether a direct algorithm uses allocated buffers in place
};

class ChoiceTable {
 public:
  // The shipped defaults: figures of a typical machine, so that the first choice is not a bad one.
  static ChoiceTable defaults();

  void set(const Setting& setting, std::vector<Candidate> candidates);
  void set_figures(const std::string& transport, Figures figures);
  const Figures& figures_of(std::string_view transport) const;

  // Drops all entries that a group of `ranks` over this transport does not use, so that the table
  // is small to send: other transports, and all rank counts but its own or else the nearest below
  // and above.
  void keep_only(std::string_view transport, std::int32_t ranks);

  // Chooses among the candidates named in `allowed`, measured or not. Deterministic. Takes up to a
  // millisecond without measurements, so callers cache the result.
  Choice choose(const Setting& setting, std::int64_t bytes, std::span<const std::string> allowed) const;

  // The choice of a group, whose ranks know only their own buffers but must all choose the same.
  // One algorithm is chosen for private and allocated buffers together: the one with the smallest
  // product of its two times. Direct algorithms compete individually if they were measured for this
  // rank count; otherwise "direct" chooses by size and by trial. `setting.allocated` is ignored.
  Choice choose_for_group(const Setting& setting, std::int64_t bytes) const;

  // The expected times of one algorithm.
  Candidate expect(const Setting& setting, std::string_view algorithm) const;

  const std::map<Setting, std::vector<Candidate>>& settings() const { return table_; }

  // Serialization, so that rank 0 can send the table to the others.
  std::string print() const;
  static Result<ChoiceTable> parse(std::string_view text);

 private:
  const Candidate* find(const Setting& setting, std::string_view algorithm) const;

  std::map<Setting, std::vector<Candidate>> table_;
  std::map<std::string, Figures, std::less<>> figures_;  // by transport
};

// The defaults, overridden by this machine's entries in the statistics database. `statistics` is as
// in Options: empty is the user's, "none" is no file. An unreadable database is not an error:
// `trouble` then says why it was skipped.
struct LoadedChoices {
  ChoiceTable table;
  std::string trouble;
};
LoadedChoices load_choices(const std::string& statistics);

}  // namespace weft::comm
