// weft/planner/search/pipeline/choose_in_time.h -- how a step is best cut in stages and micro-batches, beside being spread.
//
//   outside   stages p, chunks v, micro-batches m, a schedule, what is done again
//   inside    on devices / p: which axes cut the model, which the batch, what is sharded
//
// What a micro-batch costs depends on the axes that cut the model and on its rows alone, and the end of a step on
// the mesh alone: each is simulated once (part_costs.h), and all else is arithmetic over them. Candidates come in
// the order of what they take where stages are alike, bubbles counted; those that cannot fit or are too slow even
// so are left out.
// Where a plan does not fit as it is, it is looked at with what costs little work done again, with whole layers done
// again, and between these with as many layers of each stage as that is short of memory for (choose_layers.h); where
// nothing fits even so, with the optimizer's states on the host, which updates there.
// The best few are then priced on their own meshes at their own rows, as a distribution that is given is.
#pragma once
#include <chrono>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribution.h"
#include "weft/parallel/train/recompute.h"
#include "weft/plan/cluster/cluster.h"
#include "weft/planner/search/distribution/choose_distribution.h"
#include "weft/planner/search/pipeline/price_in_time.h"

namespace weft::search {

struct InTimeProblem {
  const plan::Graph* plan = nullptr;  // of one device and a whole batch
  std::string batch;                  // the index that micro-batches cut
  std::int64_t rows = 1;              // of a step along it
  // The plan of so many rows; it lives as long as the problem.
  std::function<Result<const plan::Graph*>(std::int64_t rows)> plan_of;
  const cluster::Cluster* cluster = nullptr;
  const Machine* machine = nullptr;  // of the cluster
  // Of a mixed cluster: the same cluster with such devices alone. It lives as long as the problem.
  std::function<const Machine*(const cluster::Device&)> machine_with = {};
  double memory_bytes = 0;       // that a rank may take; 0: no limit
  bool memory_is_asked = false;  // by a user; else it is that of the smallest device
  FixedPart fixed;               // by hints
  std::optional<train::Recompute> recomputed =
      {};  // what the plans do again already, by the user; none: to choose
  // Of a plan without stages that fits: what takes no less is not looked for, and not finding any is an error.
  double beat_seconds = std::numeric_limits<double>::infinity();
  std::vector<double> work = {};      // by part: what stages are cut by; empty: what each of them takes
  CodecUse codecs = {};               // of what is priced as it is given
  std::vector<std::string> off = {};  // of the search: kRecomputeStage, kSynthesizeStage
  // Whether ranks of a stage that have the same to send send slices (pipeline/slice_crossings.h); none: where it is
  // quicker.
  std::optional<bool> slice_sends = {};
  Watching watching = {};
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();

  // What a rank may take on such a device, or on any where there is none.
  double room_on(const cluster::Device* device) const;
};

struct PlanInTime {
  distribute::Distribution distribution;
  PricedInTime priced;
  bool fits = false;
};

// A rank along an axis whose ranks take unequal numbers of micro-batches.
struct Replica {
  std::int64_t takes = 1;
  std::string device;  // empty: that of all
  double seconds = 0;  // of its step, until it waits for the others
};

struct ChosenInTime : PlanInTime {
  std::vector<Replica> replicas = {};  // those of one such axis; else none. What is priced is the slowest
  StagedCosts costs = {};              // what it was priced by
  cost::MeshLink wire = {};
  std::vector<std::string> parts;      // names
  std::optional<PlanInTime> megatron;  // the best of tensor x pipeline x data
  std::int64_t layers = 0, folded = 0;
  std::int64_t candidates = 0, simulated = 0, priced_events = 0;
  double search_seconds = 0;
  bool ended_early = false;
  double least_seconds = 0;  // of all candidates that might fit, bubbles counted
};

// Fails where nothing fits, with the smallest that was found.
Result<ChosenInTime> choose_in_time(const InTimeProblem& problem);

// A distribution in time as it is. Fails where it is none of this cluster and model.
Result<ChosenInTime> price_given(const InTimeProblem& problem, const distribute::Distribution& given);

// What a micro-batch of each part takes under it: what its stages are to be cut by.
Result<std::vector<double>> work_of_parts(const InTimeProblem& problem,
                                          const distribute::Distribution& given);

// Where the parts of each place end, by place: where stages differ they are cut by more than one number a part.
std::vector<std::size_t> ends_of_runs(const PricedInTime& priced);

// What the end of a step costs, beside its micro-batches.
void add_end_of_step(PartCosts& costs, const PartCosts& ends);
// The distribution of a micro-batch on the ranks of a stage; where a stage is one device, on one rank.
distribute::Distribution on_stage(const distribute::Distribution& distribution);
// The machine as a mesh sees it that has some axes of this one: their exchanges pass the same wires.
Machine within_mesh(const Machine& machine, const plan::Mesh& whole);

}  // namespace weft::search
