// weft/runtime/run/rank_comparison.h -- what all ranks of a launcher must have alike, told before they go on.
//
//   RankComparison comparison("TRAIN digits_mlp ...");     every rank comes
//   auto ready = read_data();                              each works as long as it needs
//   WEFT_TRY_STATUS(comparison.end(ready, {{"data", digest}, {"settings", "b = 32"}}));
//
//     rank 2 has other data than rank 0, rank 1 and rank 3
//     rank 1: cannot read 'digits.csv': no such file or directory
//
// Each rank runs the script for itself, on files and settings of its own host. What one of them lacks all tell
// at once, each in the words of the rank that lacks it; nobody waits longer than the work takes. Without a
// launcher nothing is compared and end() is what it is given.
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

// All ranks must claim the same.
struct Claim {
  std::string what;    // "data"
  std::string value;   // a digest, or a text to be shown
  bool shown = false;  // the error shows it
  std::string hint = {};
};

// Those that most ranks agree with, and the others; where as many say either, the lowest rank is right.
struct RankValue {
  std::int32_t rank = 0;
  std::string value;
};
struct Sides {
  std::vector<std::int32_t> alike, odd;
};
Sides take_sides(const std::vector<RankValue>& values);

// What a rank says when its work is done.
struct RankWord {
  std::string at;  // the statement
  std::optional<Error> error;
  std::vector<Claim> claims;
};

// What `rank` tells of the words of all, by rank; the same on all ranks but for whose error it is.
Status compare_words(const std::vector<RankWord>& words, std::int32_t rank);

class RankComparison {
 public:
  enum class When : std::uint8_t {
    launched,  // where there is a launcher: the ranks come together
    joined,    // where they came together before
    not_at_all
  };
  // Collective: every rank makes one for the same statement.
  explicit RankComparison(std::string at, When when = When::launched);
  RankComparison(const RankComparison&) = delete;
  RankComparison& operator=(const RankComparison&) = delete;
  ~RankComparison();  // without end(): this rank failed, and the others are told

  bool compares() const { return job_ != nullptr; }  // there are others: claims are worth making

  // Waits for the others as long as they work. An error of this rank's is returned as it is.
  Status end(const Status& mine, std::vector<Claim> claims = {});

 private:
  void talk();  // lets the others know that this rank lives, until all are done

  std::string at_;
  std::shared_ptr<transport::Job> job_;
  std::uint64_t number_ = 0;
  std::mutex mutex_;
  std::condition_variable done_;
  std::optional<std::string> word_;  // once this rank's work is done
  Status outcome_;                   // of talking
  std::vector<RankWord> words_;
  std::jthread talker_;
};

// For a rank that ends before it came together with the others: they learn why, where they come.
void tell_other_ranks(const Error& error);

}  // namespace weft::run
