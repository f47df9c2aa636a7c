// weft/runtime/run/local_ranks_member.h -- one rank's part of a distributed run.
//
// Included by the files of run/ only. All functions but the constructor's kind are collective: every rank
// calls them in the same order.
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
#include "weft/runtime/run/step_word.h"
#include "weft/runtime/run/weights.h"

namespace weft::run {

class Member {
 public:
  // Joins the others, compiles this rank's program and fills its shares of parameters and states.
  static Result<std::unique_ptr<Member>> start(const distribute::DistributedPlan& plan,
                                               const std::shared_ptr<transport::Job>& job,
                                               const LocalRanksOptions& options, const Weights& weights);

  std::int32_t number() const { return world_->rank(); }  // by the mesh; rank 0 of the job is 0
  exec::Rank& rank() { return *rank_; }
  const plan::Mesh& mesh() const { return plan_.mesh; }

  // Fills this rank's share of a batch. Not collective.
  void feed(const Feed& feed, std::int64_t step);
  Result<double> loss() const;  // of the last step

  // After how many steps ranks agree on what they learned; 1: they learn together.
  std::int64_t steps_alone() const { return steps_alone_; }
  // After a step: parameters that ranks learned by themselves are made alike; `wholly`: and their moments.
  Status agree(bool wholly) { return averages_ ? averages_->agree(wholly) : Status(); }
  void part() {
    if (averages_) averages_->part();
  }

  // The largest of what the ranks say, on all of them and on servers.
  Result<SaidWord> hear(Word word);
  // Fails, on all ranks and naming those that differ, where ranks that hold copies of a tensor hold other bits,
  // as far as a sample shows: another one after each step. Of ranks that learn alone, parameters only.
  Status compare_replicas(std::int64_t step);
  // The tensors of the whole model, on rank 0, or on all where `everywhere`.
  Status gather(Weights& weights, bool everywhere);
  // Every rank's bytes, by rank, on the same.
  Result<std::vector<std::vector<std::byte>>> gather(std::span<const std::byte> mine, bool everywhere);
  Status wait_for_all() { return world_->barrier(); }

  // Keeps what this rank holds before a step, and what it kept before that: where ranks die one of two may have
  // begun a step that the other has not. Not collective.
  Status keep_copy(std::int64_t step);
  // When others died: the tensors of the whole model, on rank 0, as of the last step of which all that are left
  // have a copy. Every one of them calls it, and rank 0 must be among them. What it computes with is gone then.
  // Fails, on all, where nobody that is left has a share of a tensor.
  Result<Weights> rescue(Weights weights);

 private:
  struct CutRows {
    plan::DType dtype = plan::DType::f32;
    std::vector<plan::Dim> dims;      // of the rank's rows, whole
    std::vector<plan::Share> shares;  // of these
    std::vector<std::byte> whole;
    std::span<std::byte> part;
  };

  Member(const distribute::DistributedPlan& plan, std::vector<SharedSource> sources);
  Status fill(const Weights& weights);
  Status start_averages(const Weights& weights, const OuterUpdate& outer);
  // One tensor of the model, of which this rank has `mine`. Empty where it is not to keep it.
  Result<std::vector<std::byte>> gather_shares(comm::Communicator& group,
                                               std::span<const std::int32_t> numbers,
                                               const SharedSource& source, const plan::Type& type,
                                               std::span<const std::byte> mine, bool everywhere);
  void take_input(const SharedSource& source, const program::Port* port);
  // From the ranks of a group: `numbers[r]` is the mesh's number of its rank r. Each share comes from the first
  // that has it.
  Status gather(comm::Communicator& group, std::span<const std::int32_t> numbers, Weights& weights,
                bool everywhere);
  const program::Port* port_of(const SharedSource& source) const;
  std::span<const plan::Share> shares(const SharedSource& source) const;

  const distribute::DistributedPlan& plan_;
  const std::vector<SharedSource> sources_;
  // The order of destruction is the reverse: the rank lies in memory of the exchanger's.
  std::unique_ptr<comm::Communicator> as_launched_;  // where the mesh has another order than the job
  std::unique_ptr<comm::Communicator> whole_;        // where servers have a part: the ranks, and then these
  std::unique_ptr<comm::Communicator> world_;
  std::unique_ptr<exec::CommExchanger> exchanger_;
  std::unique_ptr<exec::GpuExchanger> on_gpu_;  // where they lie on one
  std::unique_ptr<exec::Rank> rank_;
  std::int64_t steps_alone_ = 1;
  std::optional<ParameterAverages> averages_;
  // For each input of the plan where the rank's rows of the batch go: its own memory, or, where rows are cut
  // too, whole rows from which its share is cut.
  std::vector<InputMemory> inputs_;
  std::vector<CutRows> cuts_;
  struct Copy {
    std::int64_t step = -1;  // -1: none
    std::vector<std::byte> bytes;
  };
  std::array<Copy, 2> copies_;  // the newest first
};

}  // namespace weft::run
