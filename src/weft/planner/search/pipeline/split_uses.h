// weft/planner/search/pipeline/split_uses.h -- a split of the devices as a distribution: what each of its factors slices.
//
//   node: 4 stages x 4 batches,  gpu: 8 of the model     node_a=4: stage; node_b=4: slice b; gpu=8: slice f, h
#pragma once
#include <string>
#include <vector>

#include "weft/parallel/distribute/distribution.h"
#include "weft/parallel/distribute/index_roles.h"
#include "weft/planner/search/pipeline/choose_in_time.h"
#include "weft/planner/search/pipeline/splits.h"

namespace weft::search {

// The same devices for batches and the model alone, whatever the stages are.
Split without_stages(Split split);

class SplitUses {
 public:
  // REQUIRES: the problem outlives it.
  SplitUses(const InTimeProblem& problem, const distribute::IndexRoles& roles);

  // Ways to slice the model: along its own indices and the sequence, or those alone.
  std::size_t lists() const { return lists_.size(); }
  const std::vector<std::string>& model_indices() const { return lists_.front(); }
  // Axes on which hints slice the batch.
  std::vector<std::string> batch_axes() const;
  // One mesh axis for each factor of a cluster axis that has ranks.
  distribute::Distribution distribution_of(const Split& split, std::size_t list,
                                           distribute::Shard shard) const;
  // Its axes that cut the model: what one replica is.
  distribute::Distribution model_of(const distribute::Distribution& whole) const;

 private:
  using Names = std::vector<std::string>;

  Names hinted(const std::string& axis) const;

  const InTimeProblem& problem_;
  std::vector<Names> lists_;
};

}  // namespace weft::search
