// weft/runtime/measure/bench_group.h -- the ranks of one library, started once, asleep between turns.
//
//   WEFT_TRY(group, BenchGroup::start(recipe, 4));
//   WEFT_TRY(answer, group->turn(turn));          // the slowest rank's time, all ranks' processor time
//
// A group is killed if one of its ranks exits, sends an invalid answer, or is silent past the
// turn's limit. From then on every turn fails with the reason. No process outlives a group: ranks
// that the benchmark cannot reach exit when its socket closes.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/runtime/measure/bench_line.h"
#include "weft/runtime/measure/bench_turn.h"

namespace weft::measure {

struct BenchRecipe {
  std::vector<std::string> command;  // a launcher with arguments, or a program started once per rank
  bool each_rank = false;            // the latter, with RANK and WORLD_SIZE set
  std::vector<std::pair<std::string, std::string>> environment;
};

class BenchGroup {
 public:
  // Fails with the first output of the started processes if not all ranks connect within `limit`
  // seconds.
  static Result<std::unique_ptr<BenchGroup>> start(const BenchRecipe& recipe, std::int32_t ranks,
                                                   std::int64_t limit = 30);
  ~BenchGroup();
  BenchGroup(const BenchGroup&) = delete;
  BenchGroup& operator=(const BenchGroup&) = delete;

  const std::string& version() const { return version_; }
  bool alive() const { return !ranks_.empty(); }

  Result<std::vector<std::string>> variants(collective::Kind kind);
  Result<BenchAnswer> turn(const BenchTurn& turn);

 private:
  struct Rank {
    BenchLine line;
    pid_t process = 0;
  };

  explicit BenchGroup(BenchListener listener) : listener_(std::move(listener)) {}
  Status spawn(const BenchRecipe& recipe, std::int32_t ranks);
  Status gather(std::int32_t ranks, std::int64_t limit);
  // Sends a line to every rank and returns one line from each, by rank.
  Result<std::vector<std::string>> ask(std::string_view line, std::int64_t limit);
  bool all_started_run();
  Error fail(std::string reason);
  std::string first_output_line() const;
  void end(std::int64_t patience_milliseconds);

  BenchListener listener_;
  std::vector<pid_t> started_;  // children of this process
  std::vector<Rank> ranks_;
  int words_ = -1;  // a file with their standard output and error
  std::string version_, failure_;
};

}  // namespace weft::measure
