// weft/runtime/measure/tune_rank.h -- measurements of one rank in tuning: opens, runs, times.
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

// Stands for the communicator's own choice instead of an algorithm's name.
inline constexpr std::string_view kChosen = "chosen";

// What rank 0 tells all ranks to measure.
struct TuneOrder {
  bool end = false;
  comm::Kind kind = comm::Kind::all_reduce;
  std::int64_t bytes = 0;
  bool allocated = false;
  std::int32_t batches = 1;
  bool warm_up = true;  // one call before each batch; pointless for large ones, which flush caches
  struct Turn {
    std::string algorithm;
    std::int32_t iterations = 1;  // per batch
  };
  std::vector<Turn> turns = {};
};
std::string print(const TuneOrder& order);
Result<TuneOrder> parse_tune_order(std::string_view text);

// One rank's answer: seconds per call by turn and batch, or the error of the turn.
struct TuneTimes {
  std::vector<std::vector<double>> batches;
  std::vector<std::string> troubles;
};
std::string print(const TuneTimes& times);
Result<TuneTimes> parse_tune_times(std::string_view text);

class TuneRank {
 public:
  // `statistics`: the database for kChosen.
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

  // Opens the one group that all candidates use: in two groups of 4 ranks on 2 cores, the same
  // algorithm took up to 14 % longer in one of them. Opens a new one per kind, so that programs do
  // not accumulate.
  Status open_group(comm::Kind kind);
  Result<Buffers> buffers_for(const TuneOrder& order);
  void free_allocated();
  void drop_group();
  Result<double> run_batch(const comm::Call& call, const TuneOrder::Turn& turn, bool warm_up);

  std::shared_ptr<transport::Job> job_;
  comm::TransportKind transport_ = comm::TransportKind::automatic;
  std::string statistics_;
  std::unique_ptr<comm::Communicator> control_;  // for barriers
  std::unique_ptr<comm::Communicator> group_;
  comm::Kind kind_ = comm::Kind::custom;  // the collective that group_ was opened for
  bool broken_ = false;                   // a call on group_ failed
  std::vector<float> private_input_, private_output_;
  Buffers allocated_ = {};  // from group_
  std::int64_t allocated_bytes_ = 0;
};

}  // namespace weft::measure
