// weft/runtime/measure/bench_round.h -- all libraries in turn, on one number of ranks and transport.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/runtime/measure/bench_group.h"
#include "weft/runtime/measure/bench_peers.h"
#include "weft/runtime/measure/bench_row.h"

namespace weft::measure {

class BenchRound {
 public:
  // Starts all libraries; those that fail to start are dropped, with the reason in left_out().
  BenchRound(BenchContenders who, std::int32_t ranks);

  const std::vector<std::string>& left_out() const { return who_.left_out; }
  bool empty() const { return who_.contenders.empty(); }
  std::vector<std::pair<std::string, std::string>> versions() const;

  // One row per library, not yet compared. `like` describes the call; iterations and variants are
  // chosen here.
  std::vector<measure::BenchRow> measure(const BenchTurn& like, std::int32_t repeats);

 private:
  // One variant of a contender's collective.
  struct Attempt {
    std::string variant;
    std::int64_t iterations = 1;
    double estimate = 0;
    std::vector<measure::BenchSample> samples = {};
  };
  // A contender at one message size.
  struct Entry {
    std::vector<Attempt> attempts;
    std::string failure;
  };

  void revive(std::size_t group);
  Entry probe(const BenchContender& contender, const BenchTurn& like);
  Result<double> estimate(const BenchContender& contender, const BenchTurn& like, const std::string& variant);
  Result<BenchAnswer> take_turn(const BenchContender& contender, BenchTurn turn);
  measure::BenchRow row_of(const BenchContender& contender, const Entry& entry, const BenchTurn& like) const;

  BenchContenders who_;
  std::int32_t ranks_;
  std::vector<std::unique_ptr<BenchGroup>> groups_;
  std::vector<int> failed_starts_;
  std::map<std::string, int> ends_;  // crashes of its group per variant: "gloo all_reduce bcube:sync"
};

}  // namespace weft::measure
