// weft/planner/search/pipeline/split_uses.h -- turn a split of the devices into a distribution.
//
//   node: 4 stages x 4 data,  gpu: 8 model     node_a=4: stage; node_b=4: slice b; gpu=8: slice f, h
#pragma once
#include <string>
#include <vector>

#include "weft/parallel/distribute/distribution.h"
#include "weft/parallel/distribute/index_roles.h"
#include "weft/planner/search/pipeline/choose_pipeline.h"
#include "weft/planner/search/pipeline/splits.h"

namespace weft::search {

// The same split with one stage. Data and model factors stay.
Split without_stages(Split split);

class SplitUses {
 public:
  // REQUIRES: the problem outlives it.
  SplitUses(const PipelineProblem& problem, const distribute::IndexRoles& roles);

  // Lists of indices to slice for the model: its own indices and the sequence, or only its own.
  std::size_t lists() const { return lists_.size(); }
  const std::vector<std::string>& model_indices() const { return lists_.front(); }
  // Axes on which hints slice the batch.
  std::vector<std::string> batch_axes() const;
  // One mesh axis per factor above 1 of a cluster axis.
  distribute::Distribution distribution_of(const Split& split, std::size_t list,
                                           distribute::Shard shard) const;
  // Only the axes that slice the model: one replica.
  distribute::Distribution model_of(const distribute::Distribution& whole) const;

 private:
  using Names = std::vector<std::string>;

  Names hinted(const std::string& axis) const;

  const PipelineProblem& problem_;
  std::vector<Names> lists_;
};

}  // namespace weft::search
