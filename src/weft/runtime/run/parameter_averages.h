// weft/runtime/run/parameter_averages.h -- ranks that learned by themselves for some steps agree on what they learned.
//
//   mean       of what the ranks that hold copies of a parameter have
//   change     = anchor - mean                          anchor: what they had when they last agreed
//   momentum   = outer.momentum * momentum + change
//   parameter  = anchor - outer.rate * (change + outer.momentum * momentum)          Nesterov's, as DiLoCo has it
//
// With a rate of 1 and no momentum that is the mean, and neither anchor nor momentum is kept. A parameter that is
// rounded from a master weight is rounded again. Moments and other states stay a rank's own until all is to be alike:
// for a checkpoint, or at the end.
//
// Included by the files of run/ only. What is not const is collective.
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
  // `group`: the ranks that hold copies of what this one holds.
  ParameterAverages(exec::Rank& rank, std::unique_ptr<comm::Communicator> group, const OuterUpdate& outer);

  // Takes a parameter or state of the rank's. `start`: momentum that was kept before; empty: none was.
  Status add(const program::Port& port, bool is_parameter, std::span<const std::byte> start);

  // After a step of the rank's own: parameters and states are alike no more.
  void part() { parameters_parted_ = states_parted_ = true; }
  // Parameters that are not alike are made so; `wholly`: and states. What is alike keeps its bits.
  Status agree(bool wholly);

  static std::string momentum_name(std::string_view parameter);
  // Empty where there is none.
  std::span<const float> momentum(std::string_view parameter) const;

 private:
  struct Averaged {
    const program::Port* port = nullptr;
    const program::Port* rounded = nullptr;  // the parameter that is rounded from it
    bool is_learned = true;                  // a parameter or its master, not a moment
    std::vector<float> anchor, momentum;
  };

  bool moves_beyond_mean() const { return outer_.rate != 1 || outer_.momentum != 0; }
  Status average(Averaged& tensor);
  void update(Averaged& tensor);

  exec::Rank& rank_;
  const std::unique_ptr<comm::Communicator> group_;
  const OuterUpdate outer_;
  std::vector<Averaged> tensors_;
  std::vector<float> values_;  // of the tensor at hand
  bool parameters_parted_ = false, states_parted_ = false;
};

}  // namespace weft::run
