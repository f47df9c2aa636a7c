// weft/runtime/measure/tune_rank.h -- what a rank does when it is told to measure: opens, runs, times.
//
// Included by the files of measure/ only.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/comm/communicator.h"
#include "weft/communication/transport/job.h"

namespace weft::measure {

// The name of no algorithm, but of what a communicator chooses by itself.
inline constexpr std::string_view kChosen = "chosen";

// What rank 0 has everyone do.
struct TuneOrder {
  bool end = false;
  comm::Kind kind = comm::Kind::all_reduce;
  std::int64_t bytes = 0;
  bool allocated = false;
  std::int32_t batches = 1;
  bool warm_up = true;  // one call before each batch; a large one leaves nothing in the caches anyway
  struct Turn {
    std::string algorithm;
    std::int32_t iterations = 1;  // a batch
  };
  std::vector<Turn> turns = {};
};
std::string print(const TuneOrder& order);
Result<TuneOrder> parse_tune_order(std::string_view text);

// One rank's answer: of each turn the seconds a call, batch by batch; or why it failed.
struct TuneTimes {
  std::vector<std::vector<double>> batches;
  std::vector<std::string> troubles;
};
std::string print(const TuneTimes& times);
Result<TuneTimes> parse_tune_times(std::string_view text);

class TuneRank {
 public:
  // `statistics`: what kChosen chooses from.
  static Result<std::unique_ptr<TuneRank>> open(std::shared_ptr<transport::Job> job,
                                                comm::TransportKind transport, std::string statistics);

  std::int32_t rank() const { return control_->rank(); }
  std::int32_t ranks() const { return control_->size(); }
  std::string_view transport() const { return control_->transport(); }

  // Collective.
  TuneTimes measure(const TuneOrder& order);

 private:
  struct Buffers {
    void* input = nullptr;
    void* output = nullptr;
  };

  // All candidates use one group: the same algorithm in two groups of 4 ranks on 2 cores took up to 14 %
  // longer in one of them. A new one for each kind, so that not all programs stay open.
  Status open_group(comm::Kind kind);
  Result<Buffers> buffers_for(const TuneOrder& order);
  void free_allocated();
  void drop_group();
  Result<double> run_batch(const comm::Call& call, const TuneOrder::Turn& turn, bool warm_up);

  std::shared_ptr<transport::Job> job_;
  comm::TransportKind transport_ = comm::TransportKind::automatic;
  std::string statistics_;
  std::unique_ptr<comm::Communicator> control_;  // barriers
  std::unique_ptr<comm::Communicator> group_;
  comm::Kind kind_ = comm::Kind::custom;  // what the programs of group_ are for
  bool broken_ = false;                   // group_ is, by a call that failed
  std::vector<float> private_input_, private_output_;
  Buffers allocated_ = {};  // of group_
  std::int64_t allocated_bytes_ = 0;
};

}  // namespace weft::measure
