// weft/runtime/run/parameter_averages.h -- averages the parameters of ranks after local steps.
//
//   mean       of the ranks that hold copies of a parameter
//   change     = anchor - mean                          anchor: the parameters after the last average
//   momentum   = outer.momentum * momentum + change
//   parameter  = anchor - outer.rate * (change + outer.momentum * momentum)          Nesterov, as in DiLoCo
//
// With a rate of 1 and no momentum this is the mean, and neither anchor nor momentum is stored. A
// parameter that is rounded from a master weight is rounded again. Moments and other states stay
// local until everything must be equal: for a checkpoint, or at the end.
//
// Included by the files of run/ only. Non-const functions are collective.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/comm/communicator.h"
#include "weft/runtime/exec/rank.h"
#include "weft/runtime/run/local_ranks.h"
#include "weft/runtime/run/weights.h"

namespace weft::run {

class ParameterAverages {
 public:
  // `group`: the ranks that hold copies of this rank's shares.
  ParameterAverages(exec::Rank& rank, std::unique_ptr<comm::Communicator> group, const OuterUpdate& outer);

  // Adds a parameter or state of the rank. `start`: saved momentum; empty: none.
  Status add(const program::Port& port, bool is_parameter, std::span<const std::byte> start);

  // Call after a local step: marks parameters and states as different between ranks.
  void part() { parameters_parted_ = states_parted_ = true; }
  // Averages parameters that differ; `wholly`: also states. Tensors that are equal keep their bits.
  Status agree(bool wholly);

  static std::string momentum_name(std::string_view parameter);
  // Empty if there is none.
  std::span<const float> momentum(std::string_view parameter) const;

 private:
  struct Averaged {
    const program::Port* port = nullptr;
    const program::Port* rounded = nullptr;  // the parameter rounded from this tensor
    bool is_learned = true;                  // a parameter or master weight, not a moment
    std::vector<float> anchor, momentum;
  };

  bool moves_beyond_mean() const { return outer_.rate != 1 || outer_.momentum != 0; }
  Status average(Averaged& tensor);
  void update(Averaged& tensor);

  exec::Rank& rank_;
  const std::unique_ptr<comm::Communicator> group_;
  const OuterUpdate outer_;
  std::vector<Averaged> tensors_;
  std::vector<float> values_;  // of the current tensor
  bool parameters_parted_ = false, states_parted_ = false;
};

}  // namespace weft::run
