// weft/planner/search/pipeline/part_costs.h -- what each part of a model costs a rank of the stage that holds it.
//
//   embed ─▶ block 0 ─▶ block 1 ─▶ .. ─▶ head      of one micro-batch: seconds of F, B and W, bytes kept from
//                                                  F to W, bytes that go on to the next part
//                                                  of a step: the update, and what stays in memory
//
// A rank's local plan falls into two programs: a micro-batch without the sums of its gradients, and the end of a
// step, which sums what has been accumulated and updates. Each is simulated once, with few of its alike layers,
// and what it takes is told by part and pass; any number of stages, micro-batches and schedules is priced from
// that. An accumulated gradient is added to by the product that makes it, so adding takes no time of its own;
// where parameters are sharded a gradient is summed with every micro-batch, since nobody has room for all of it.
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
  std::uint32_t source = 0;        // its number
  double gradient = 0, value = 0;  // bytes
};

struct PartCost {
  double forward = 0, backward = 0, weight = 0;  // seconds of a micro-batch
  double computing = 0;                          // of those, the time that is not spent waiting for others
  double update = 0, reducing = 0;               // seconds of a step: computing, and exchanging beside that
  double kept = 0, working = 0;                  // bytes of a micro-batch in flight, and while a pass runs
  double parameters = 0, gradients = 0, optimizer = 0;  // bytes
  double sent = 0;  // bytes that go on to the next part, and back as gradients
  // Where they go to another stage as codes: bytes less, and seconds to make codes and numbers again of them.
  double spared = 0, coding = 0;
  std::vector<double> alike =
      {};               // by axis of the stage's mesh: of those, bytes that ranks along it could slice
  double on_host = 0;   // bytes of the optimizer that lie there (offload.h)
  double repeated = 0;  // of backward and weight, the seconds that do forward work again
  std::vector<TiedParameter> tied = {};
  double work() const { return forward + backward + weight; }
};
using PartCosts = std::vector<PartCost>;  // in the order of the chain

// Codecs that make small what ranks exchange, on such a device; null: none do.
struct CodedParts {
  const CodecUse* use = nullptr;
  const cluster::Device* device = nullptr;
};

// The parts of one plan. Layers that are alike are priced once.
class PricedParts {
 public:
  // REQUIRES: the plan outlives it. `again` is what it does twice besides what it does so already.
  explicit PricedParts(const plan::Graph& plan, const train::Recompute& again = {});

  std::size_t count() const { return place_.size(); }
  // "embed", "block.0 attention": the first entry of a part, for people.
  const std::string& name(std::size_t part) const { return names_[part]; }
  // By part: the layer of a REPEAT that it is of, "block.0"; empty where it is of none.
  const std::vector<std::string>& layer_names() const { return layer_names_; }
  std::int64_t layers() const { return layers_; }
  std::int64_t folded_layers() const { return folded_ ? kFolded : 0; }

  // What a micro-batch of the plan's size takes on this mesh.
  Result<PartCosts> micro_batch(const distribute::Distribution& within, const Machine& machine,
                                const CodedParts& coded = {}) const;
  // What the end of a step takes there, and what is kept from step to step, with gradients in f32 if they
  // accumulate.
  Result<PartCosts> end_of_step(const distribute::Distribution& within, const Machine& machine,
                                bool accumulates, const CodedParts& coded = {}) const;

 private:
  static constexpr std::int64_t kFolded = 5;

  const plan::Graph& looked_at() const { return folded_ ? *folded_ : plan_; }
  PartCosts unfolded(const PartCosts& costs) const;

  // Some layers alone make a plan whose layers are not alike. Each of them costs what it does where all do their
  // forward pass again, and each of the others what it does in `others_`.
  const std::optional<train::Recompute> in_all_layers_;
  const std::optional<plan::Graph> again_;  // the plan with its copies, where it is asked for any
  const plan::Graph& plan_;
  std::int64_t layers_ = 0;
  std::optional<plan::Graph> folded_;
  std::vector<std::size_t> place_;  // by part: the part of the folded plan that stands for it
  std::vector<std::string> names_, layer_names_;
  std::unique_ptr<const PricedParts> others_;
  std::vector<bool> repeats_;  // by part, beside others_
  std::size_t looked_parts_ = 0;
  std::map<std::string, std::size_t, std::less<>> part_of_entry_;  // by path, of what is looked at
};

}  // namespace weft::search
