// weft/planner/search/pipeline/choose_pipeline.h -- search for the fastest pipeline plan.
//
//   outer     stages p, chunks v, micro-batches m, schedule, recomputation
//   inner     on devices / p: which axes slice the model, which slice the batch, what is sharded
//
// The cost of a micro-batch depends only on its rows and on the axes that slice the model. The cost
// of the end of a step depends only on the mesh. Each is simulated once (part_costs.h), and the
// rest is arithmetic over these costs. Candidates are ordered by the time they would take with
// balanced stages, bubbles included. Those that cannot fit or are too slow even then are dropped.
//
// A plan that does not fit is tried with cheap recomputation, then with all layers recomputed, then
// in between, with as many recomputed layers per stage as its memory requires (choose_layers.h). If
// nothing fits, the optimizer's states are offloaded to the host, which then does the updates. The
// best few candidates are then estimated with their own mesh and rows, like a given distribution.
#pragma once
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribution.h"
#include "weft/parallel/train/recompute.h"
#include "weft/plan/cluster/cluster.h"
#include "weft/planner/search/distribution/choose_distribution.h"
#include "weft/planner/search/pipeline/estimate_pipeline.h"

namespace weft::search {

class StageCostCache;

struct PipelineProblem {
  const plan::Graph* plan = nullptr;  // for one device and a whole batch
  std::string batch;                  // the index that micro-batches split
  std::int64_t rows = 1;              // per step
  // The plan with the given number of rows. It lives as long as the problem.
  std::function<Result<const plan::Graph*>(std::int64_t rows)> plan_of;
  const cluster::Cluster* cluster = nullptr;
  const Machine* machine = nullptr;  // for the cluster
  // For a mixed cluster: the same cluster with this device only. It lives as long as the problem.
  std::function<const Machine*(const cluster::Device&)> machine_with = {};
  double memory_bytes = 0;       // limit per rank; 0: no limit
  bool memory_is_asked = false;  // set by the user; else the limit is that of the smallest device
  double memory_reserve = 0;     // share of each device's memory that plans leave free
  FixedPart fixed;               // by hints
  std::optional<train::Recompute> recomputed =
      {};  // what the user already set to be recomputed; none: the search chooses
  // Seconds of a plan without stages that fits. Finding no faster plan is an error.
  double beat_seconds = std::numeric_limits<double>::infinity();
  std::vector<double> work = {};  // per part, for cutting stages; empty: the estimated work
  // Launchers cut between whole layers: layers of each run of parts, in order. Empty: with `whole_layers` as the stack
  // cuts, in equal numbers or for equal times; else between any parts.
  std::vector<std::int64_t> run_layers = {};
  bool whole_layers = false;
  // Shared by estimates of given distributions; null: each simulates its own.
  std::shared_ptr<StageCostCache> cache = {};
  CodecUse codecs = {};               // for given distributions
  std::vector<std::string> off = {};  // disabled planner stages: kRecomputeStage, kSynthesizeStage
  // Whether ranks of a stage that hold the same activation each send a slice of it
  // (pipeline/slice_boundaries.h). None: wherever it is faster.
  std::optional<bool> slice_sends = {};
  // Whether gradient reduction and parameter gathers overlap passes, where the stack does that.
  bool overlaps_reduce = false, overlaps_gather = false;
  Watching watching = {};
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();

  // Memory limit of a rank on this device, or on any device if null.
  double room_on(const cluster::Device* device) const;
};

struct PipelinePlan {
  distribute::Distribution distribution;
  PipelineEstimate priced;
  bool fits = false;
};

// A rank along an axis whose ranks process unequal numbers of micro-batches.
struct Replica {
  std::int64_t takes = 1;
  std::string device;  // empty: the same for all
  double seconds = 0;  // of its step, until it waits for the others
};

struct ChosenPipeline : PipelinePlan {
  std::vector<Replica> replicas = {};  // along the axis with unequal numbers, if any; `priced` is the slowest
  StagedCosts costs = {};              // used for the estimate
  cost::MeshLink wire = {};
  std::vector<std::string> parts;        // names
  std::optional<PipelinePlan> megatron;  // the best tensor x pipeline x data plan
  std::int64_t layers = 0, folded = 0;
  std::int64_t candidates = 0, simulated = 0, priced_events = 0;
  double search_seconds = 0;
  bool ended_early = false;
  double least_seconds = 0;  // lower bound over all candidates that might fit, bubbles included
};

// Fails if nothing fits, and names the smallest plan found.
Result<ChosenPipeline> choose_pipeline(const PipelineProblem& problem);

// Estimates a given pipeline distribution. Fails if it does not match this cluster and model.
Result<ChosenPipeline> estimate_given(const PipelineProblem& problem, const distribute::Distribution& given);

// Seconds per micro-batch of each part under this distribution, for cutting stages.
Result<std::vector<double>> work_of_parts(const PipelineProblem& problem,
                                          const distribute::Distribution& given);

// The end of each run of parts, in order. Unequal stages are not cut by a single number per part.
std::vector<std::size_t> run_ends(const PipelineEstimate& priced);

// Adds the end-of-step costs to the costs of micro-batches.
void add_end_of_step(PartCosts& costs, const PartCosts& ends);
// The distribution of a micro-batch over the ranks of one stage; one device is one rank.
distribute::Distribution on_stage(const distribute::Distribution& distribution);
// The machine restricted to a mesh with some of the axes of `whole`. Exchanges use the same links.
Machine within_mesh(const Machine& machine, const plan::Mesh& whole);

}  // namespace weft::search
