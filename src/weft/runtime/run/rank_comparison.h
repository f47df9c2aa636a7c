// weft/runtime/run/rank_comparison.h -- checks that all ranks of a launcher agree before they continue.
//
//   RankComparison comparison("TRAIN digits_mlp ...");     on every rank
//   auto ready = read_data();                              may take a different time on each
//   WEFT_TRY_STATUS(comparison.end(ready, {{"data", digest}, {"settings", "b = 32"}}));
//
//     rank 2 has other data than rank 0, rank 1 and rank 3
//     rank 1: cannot read 'digits.csv': no such file or directory
//
// Each rank runs the script by itself, with files and settings of its own host. If a rank lacks
// something, all ranks report it at once with that rank's error; no rank waits longer than the work
// takes. Without a launcher nothing is compared, and end() returns its argument.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/transport/job.h"

namespace weft::run {

// A value that must be equal on all ranks.
struct Claim {
  std::string what;    // "data"
  std::string value;   // a digest, or text to print
  bool shown = false;  // print the value in the error
  std::string hint = {};
};

// Splits ranks into the majority and the rest; in a tie, the side of the lowest rank counts as the
// majority.
struct RankValue {
  std::int32_t rank = 0;
  std::string value;
};
struct Sides {
  std::vector<std::int32_t> alike, odd;
};
Sides split_by_majority(const std::vector<RankValue>& values);

// A rank's message when its work is done.
struct RankMessage {
  std::string at;  // the statement
  std::optional<Error> error;
  std::vector<Claim> claims;
};

// The result on `rank`, given the messages of all ranks. It is the same on all ranks, except that a
// rank returns its own error unchanged.
Status compare_messages(const std::vector<RankMessage>& words, std::int32_t rank);

class RankComparison {
 public:
  enum class When : std::uint8_t {
    launched,  // if there is a launcher; joins its job
    joined,    // if the job was already joined
    not_at_all
  };
  // Collective: every rank creates one for the same statement.
  explicit RankComparison(std::string at, When when = When::launched);
  RankComparison(const RankComparison&) = delete;
  RankComparison& operator=(const RankComparison&) = delete;
  ~RankComparison();  // without end(): reports to the others that this rank failed

  bool compares() const { return job_ != nullptr; }  // false: claims are not needed

  // Waits for the other ranks while they work. An error of this rank is returned unchanged.
  Status end(const Status& mine, std::vector<Claim> claims = {});

 private:
  void talk();  // sends heartbeats until all ranks are done

  std::string at_;
  std::shared_ptr<transport::Job> job_;
  std::uint64_t number_ = 0;
  std::mutex mutex_;
  std::condition_variable done_;
  std::optional<std::string> word_;  // set when this rank's work is done
  Status outcome_;                   // of talk()
  std::vector<RankMessage> words_;
  std::jthread talker_;
};

// For a rank that exits before it joins the others: they receive the reason when they join.
void notify_other_ranks(const Error& error);

}  // namespace weft::run
