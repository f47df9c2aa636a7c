// weft/runtime/run/local_ranks_member.h -- one rank of a distributed run.
//
// Included by the files of run/ only. Functions other than accessors are collective unless noted:
// all ranks call them in the same order.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/comm/communicator.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/runtime/exec/comm_exchanger.h"
#include "weft/runtime/exec/rank.h"
#include "weft/runtime/run/feed.h"
#include "weft/runtime/run/local_ranks.h"
#include "weft/runtime/run/local_ranks_shares.h"
#include "weft/runtime/run/parameter_averages.h"
#include "weft/runtime/run/step_request.h"
#include "weft/runtime/run/weights.h"

namespace weft::run {

class Member {
 public:
  // Joins the other ranks, compiles this rank's program and fills its shares of parameters and
  // states.
  static Result<std::unique_ptr<Member>> start(const distribute::DistributedPlan& plan,
                                               const std::shared_ptr<transport::Job>& job,
                                               const LocalRanksOptions& options, const Weights& weights);

  std::int32_t number() const { return world_->rank(); }  // rank in the mesh; rank 0 of the job is 0
  exec::Rank& rank() { return *rank_; }
  const plan::Mesh& mesh() const { return plan_.mesh; }

  // Fills this rank's share of a batch. Not collective.
  void feed(const Feed& feed, std::int64_t step);
  Result<double> loss() const;  // of the last step

  // The number of local steps between parameter averages; 1: ranks train synchronously.
  std::int64_t steps_between_averages() const { return steps_alone_; }
  // Call after a step: averages parameters that were trained locally; `wholly`: also their moments.
  Status agree(bool wholly) { return averages_ ? averages_->agree(wholly) : Status(); }
  void part() {
    if (averages_) averages_->part();
  }

  // Returns the largest word of any rank; collective over ranks and servers.
  Result<StepRequest> hear(Word word);
  // Checks that copies of a tensor on different ranks are bit-identical, by a sample that differs
  // after each step. Fails on all ranks, naming those that differ. With local steps, compares
  // parameters only.
  Status compare_replicas(std::int64_t step);
  // Gathers the tensors of the whole model on rank 0 or, if `everywhere`, on all ranks.
  Status gather(Weights& weights, bool everywhere);
  // Gathers every rank's bytes, by rank, in the same way.
  Result<std::vector<std::vector<std::byte>>> gather(std::span<const std::byte> mine, bool everywhere);
  Status wait_for_all() { return world_->barrier(); }

  // Copies this rank's tensors before a step, and retains the previous copy: when ranks fail, some
  // ranks may have started a step that others have not. Not collective.
  Status keep_copy(std::int64_t step);
  // After other ranks failed: returns the tensors of the whole model on rank 0, as of the last step
  // that all surviving ranks have a copy of. All surviving ranks call it, and rank 0 must be among
  // them. It overwrites the rank's current values. Fails on all ranks if no surviving rank has some
  // share.
  Result<Weights> rescue(Weights weights);

 private:
  struct CutRows {
    plan::DType dtype = plan::DType::f32;
    std::vector<plan::Dim> dims;      // of the rank's rows before cutting
    std::vector<plan::Share> shares;  // this rank's share of them
    std::vector<std::byte> whole;
    std::span<std::byte> part;
  };

  Member(const distribute::DistributedPlan& plan, std::vector<SharedSource> sources);
  Status fill(const Weights& weights);
  Status start_averages(const Weights& weights, const OuterUpdate& outer);
  // Gathers one tensor of the model, of which this rank holds `mine`. Returns it only on ranks that
  // keep it.
  Result<std::vector<std::byte>> gather_shares(comm::Communicator& group,
                                               std::span<const std::int32_t> numbers,
                                               const SharedSource& source, const plan::Type& type,
                                               std::span<const std::byte> mine, bool everywhere);
  void take_input(const SharedSource& source, const program::Port* port);
  // Gathers within a group: `numbers[r]` is the mesh rank of its rank r. Each share comes from the
  // first rank that has it.
  Status gather(comm::Communicator& group, std::span<const std::int32_t> numbers, Weights& weights,
                bool everywhere);
  const program::Port* port_of(const SharedSource& source) const;
  std::span<const plan::Share> shares(const SharedSource& source) const;

  const distribute::DistributedPlan& plan_;
  const std::vector<SharedSource> sources_;
  // Destroyed in reverse order: rank_ uses memory of the exchanger.
  std::unique_ptr<comm::Communicator> as_launched_;  // if the mesh orders ranks differently from the job
  std::unique_ptr<comm::Communicator> whole_;        // with servers: the ranks, followed by the servers
  std::unique_ptr<comm::Communicator> world_;
  std::unique_ptr<exec::CommExchanger> exchanger_;
  std::unique_ptr<exec::GpuExchanger> on_gpu_;  // if ranks share a GPU
  std::unique_ptr<exec::Rank> rank_;
  std::int64_t steps_alone_ = 1;
  std::optional<ParameterAverages> averages_;
  // Per input of the plan: where the rank's rows of the batch are written. That is the input's own
  // memory or, if rows are sliced too, a buffer of whole rows from which the share is cut.
  std::vector<InputMemory> inputs_;
  std::vector<CutRows> cuts_;
  struct Copy {
    std::int64_t step = -1;  // -1: none
    std::vector<std::byte> bytes;
  };
  std::array<Copy, 2> copies_;  // newest first
};

}  // namespace weft::run
