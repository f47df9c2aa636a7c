// weft/search/rewrite/rewrite_forward.h -- rules that fire before a plan learns.
//
//   contract, softmax, contract ──rules/attention.rules──▶ attention ──differentiate──▶ attention-gradient
//
// The backward pass of a composition reads what the composition made along the way, so that after it nothing can
// be fused any more that memory would be saved by. These rules therefore come first, in TRAIN as in INFER. Each
// is taken wherever it stands and pays by its price on the device.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "weft/cluster/device.h"
#include "weft/plan/graph.h"
#include "weft/rule/rule.h"
#include "weft/search/rewrite/rules_to_prove.h"
#include "weft/search/rewrite/trail.h"

namespace weft::search {

struct RewrittenForward {
  std::optional<plan::Graph> plan;  // none: it stays as it is
  std::vector<Step> trail;
};

// Of `rules` those of attention.rules are tried; none fires that `prove` does not prove.
RewrittenForward rewrite_forward(const plan::Graph& forward, const cluster::Device& device,
                                 std::span<const rule::Rule> rules, const ProveRule& prove);

}  // namespace weft::search
