// weft/runtime/measure/tune_rounds.h -- plans the measurements of one setting in rounds, and evaluates them.
//
//   round 0   every size, ascending: a few calls of each candidate      slow candidates are then skipped
//   round 1   every size: batches of the remaining candidates, in turn  c a b c a b
//   round 2   the same in another order                                 b a c b a c
//
// So a temporary disturbance affects only one round, and no candidate always follows the same one.
//
// Included by the files of measure/ only.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/communication/comm/choice/choice.h"
#include "weft/runtime/measure/tune_rank.h"

namespace weft::measure {

class TuneRounds {
 public:
  // predict: measures to predict later calls. check: checks predictions; also measures the
  // communicator's own choice as kChosen, and ignores candidates measured only in round 0.
  enum class Purpose : std::uint8_t { predict, check };
  TuneRounds(comm::Setting setting, Purpose purpose);

  const comm::Setting& setting() const { return setting_; }

  // What all ranks measure for a size in a round; no turns if there is nothing to do.
  TuneOrder order(std::int64_t bytes, std::int32_t round) const;
  // Adds the answers of all ranks. REQUIRES: each has as many turns as the order.
  void add(const TuneOrder& order, std::int32_t round, std::span<const TuneTimes> ranks);

  std::vector<comm::Candidate> candidates(std::string_view source) const;
  std::int64_t times() const;      // number of candidates measured
  std::int64_t disturbed() const;  // those whose median batch took over twice as long as the best
  const std::vector<std::string>& dropped() const { return dropped_; }

 private:
  struct Times {
    double first = 0;             // seconds per call in round 0
    std::vector<double> batches;  // seconds per call in later rounds
  };

  comm::Setting setting_;
  Purpose purpose_;
  std::map<std::int64_t, std::map<std::string, Times>> by_size_;
  std::set<std::string> failed_;
  std::vector<std::string> dropped_;
};

// Predicts later medians from batches by their lower quartile, because other processes only ever
// make a batch slower. In pairs of runs on an idle machine it differed by 4.0 to 9.6 % from the
// second run's medians, and the median by 4.0 to 8.1 %. With a compiler running beside the first
// run it was 7.2 % against 10.9 %.
double lower_quartile(std::vector<double> batches);

}  // namespace weft::measure
