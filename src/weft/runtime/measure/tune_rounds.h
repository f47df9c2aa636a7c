// weft/runtime/measure/tune_rounds.h -- what to measure of one setting, round after round, and what the times say.
//
//   round 0   every size, ascending: each candidate a few calls    who is far behind is left out afterwards
//   round 1   every size: batches of all that are left, in turn    c a b c a b
//   round 2   the same again, in another order                     b a c b a c
//
// So a bad moment spoils one round of several, and nobody always comes after the same one.
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
  // To predict later calls, or to find out how well they were predicted: then what a communicator chooses by
  // itself is measured too, as kChosen, and what only round 0 has seen does not count.
  enum class Purpose : std::uint8_t { predict, check };
  TuneRounds(comm::Setting setting, Purpose purpose);

  const comm::Setting& setting() const { return setting_; }

  // What everyone measures of a size in a round; nothing: no turns.
  TuneOrder order(std::int64_t bytes, std::int32_t round) const;
  // What every rank answered. REQUIRES: each with as many turns as the order
  void add(const TuneOrder& order, std::int32_t round, std::span<const TuneTimes> ranks);

  std::vector<comm::Candidate> candidates(std::string_view source) const;
  std::int64_t times() const;      // of candidates
  std::int64_t disturbed() const;  // of them, those half of whose batches took twice as long as the best
  const std::vector<std::string>& dropped() const { return dropped_; }

 private:
  struct Times {
    double first = 0;             // seconds a call, of round 0
    std::vector<double> batches;  // and of the later ones
  };

  comm::Setting setting_;
  Purpose purpose_;
  std::map<std::int64_t, std::map<std::string, Times>> by_size_;
  std::set<std::string> failed_;
  std::vector<std::string> dropped_;
};

// What later medians will be, from batches now: their lower quartile, since what other processes take from
// the machine only ever makes a batch slower. Of pairs of runs on an idle machine it was 4.0 to 9.6 % from
// the second one's medians, the median 4.0 to 8.1 %; where a compiler ran beside the first, 7.2 % for 10.9 %.
double lower_quartile(std::vector<double> batches);

}  // namespace weft::measure
