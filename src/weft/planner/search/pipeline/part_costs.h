// weft/planner/search/pipeline/part_costs.h -- cost of each part of a model on a rank of its stage.
//
//   embed ─▶ block 0 ─▶ block 1 ─▶ .. ─▶ head      per micro-batch: seconds of F, B and W, bytes kept
//                                                  from F to W, bytes sent to the next part
//                                                  per step: the update, and persistent memory
//
// A rank's local plan is split into two programs: a micro-batch without the sums of its gradients,
// and the end of a step, which sums the accumulated gradients and updates. Each is simulated once,
// with repeated layers folded, and its time is attributed to parts and passes. Any number of
// stages, micro-batches and schedules is estimated from that. The product that makes a gradient
// also adds it to the accumulated one, so accumulation takes no extra time. If parameters are
// sharded, gradients are summed in every micro-batch, since no rank can hold a whole one.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/train/chain.h"
#include "weft/parallel/train/recompute.h"
#include "weft/planner/search/codec/codec_use.h"
#include "weft/planner/search/distribution/evaluator.h"

namespace weft::search {

// A parameter that several parts read.
struct TiedParameter {
  std::uint32_t source = 0;        // parameter number
  double gradient = 0, value = 0;  // bytes
};

struct PartCost {
  double forward = 0, backward = 0, weight = 0;  // seconds per micro-batch
  double computing = 0;                          // of those, without waiting for other ranks
  double update = 0, reducing = 0;               // seconds per step: computing, and communication beside it
  double kept = 0, working = 0;                  // bytes per micro-batch in flight, and while a pass runs
  double parameters = 0, gradients = 0, optimizer = 0;  // bytes
  double largest = 0;  // bytes of the largest parameters that multiply one activation
  double sent = 0;     // bytes sent to the next part, and back as gradients
  // With a codec at the stage boundary: bytes saved, and seconds to encode and decode.
  double spared = 0, coding = 0;
  std::vector<double> alike =
      {};                // of `sent`, by axis of the stage's mesh: bytes that ranks along it could slice
  double on_host = 0;    // bytes of offloaded optimizer states (offload.h)
  double repeated = 0;   // of backward and weight: seconds of recomputation
  double gathering = 0;  // of reducing: gathers of updated parameters
  double layers = 0;     // share of one of the model's repeated layers
  double products = 0, attention = 0;  // seconds of `computing`
  double of_layers = 0;                // of `forward`
  double logits = 0;                   // elements of the loss's logits, of a micro-batch
  std::vector<TiedParameter> tied = {};
  double work() const { return forward + backward + weight; }
};
using PartCosts = std::vector<PartCost>;  // in chain order

// Codecs for exchanges, and the device that runs them. Null: none.
struct CodedParts {
  const CodecUse* use = nullptr;
  const cluster::Device* device = nullptr;
};

// The parts of one plan. Repeated layers are simulated once.
class PartEstimator {
 public:
  // REQUIRES: the plan outlives it. `again`: recomputation beyond that already in the plan.
  explicit PartEstimator(const plan::Graph& plan, const train::Recompute& again = {});

  std::size_t count() const { return place_.size(); }
  // The first entry of a part, for display: "embed", "block.0 attention".
  const std::string& name(std::size_t part) const { return names_[part]; }
  // By part: its REPEAT iteration, such as "block.0"; empty if it is in none.
  const std::vector<std::string>& layer_names() const { return layer_names_; }
  std::int64_t layers() const { return layers_; }
  std::int64_t folded_layers() const { return folded_ ? kFolded : 0; }

  // Cost of a micro-batch of the plan's size on this mesh.
  Result<PartCosts> micro_batch(const distribute::Distribution& within, const Machine& machine,
                                const CodedParts& coded = {}) const;
  // Cost of the end of a step, and the persistent memory. Gradients are f32 if they accumulate.
  Result<PartCosts> end_of_step(const distribute::Distribution& within, const Machine& machine,
                                bool accumulates, const CodedParts& coded = {}) const;

 private:
  static constexpr std::int64_t kFolded = 5;

  const plan::Graph& looked_at() const { return folded_ ? *folded_ : plan_; }
  PartCosts unfolded(const PartCosts& costs) const;

  // If only some layers are recomputed, layers are not alike and cannot be folded. Then the
  // recomputed layers cost what they do with all layers recomputed, and the others what they do in
  // `others_`.
  const std::optional<train::Recompute> in_all_layers_;
  const std::optional<plan::Graph> again_;  // the plan with recomputed nodes, if requested
  const plan::Graph& plan_;
  std::int64_t layers_ = 0;
  std::optional<plan::Graph> folded_;
  std::vector<std::size_t> place_;  // by part: its representative in the folded plan
  std::vector<std::string> names_, layer_names_;
  std::unique_ptr<const PartEstimator> others_;
  std::vector<bool> repeats_;  // by part: recomputed; used with others_
  std::size_t looked_parts_ = 0;
  std::map<std::string, std::size_t, std::less<>> part_of_entry_;  // by path, in looked_at()
};

}  // namespace weft::search
