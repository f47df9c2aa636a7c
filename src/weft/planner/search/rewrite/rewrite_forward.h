// weft/planner/search/rewrite/rewrite_forward.h -- rules that apply before differentiation.
//
//   contract, softmax, contract ──rules/attention.rules──▶ attention ──differentiate──▶ attention-gradient
//   contract, cross-entropy, sum ───rules/loss.rules───▶ linear-cross-entropy ──differentiate──▶ mul
//                               rules/loss_alone.rules   the same without gradients, for inference
//
// A backward pass reads the intermediate values of the forward pass, so afterwards no fusion can
// save memory. These rules therefore come first, in TRAIN and in INFER. A match is applied if it is
// cheaper on the device. The cost of a loss includes its gradients, which linear-cross-entropy
// computes too.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "weft/plan/cluster/device.h"
#include "weft/plan/graph/graph.h"
#include "weft/planner/search/rewrite/rules_to_prove.h"
#include "weft/planner/search/rewrite/trail.h"
#include "weft/rules/rule/match.h"
#include "weft/rules/rule/rule.h"

namespace weft::search {

struct RewrittenForward {
  std::optional<plan::Graph> plan;  // none: unchanged
  std::vector<Step> trail;
};

struct ForwardRewrites {
  bool attention = true;
  // Rewrites losses with at least this many bytes of logits, if that pays. 0: all that a kernel can
  // tile; none: no losses.
  std::optional<std::int64_t> logits_from = std::nullopt;
  bool learns = true;  // losses compute gradients, whose cost is included
};

// The rules of attention.rules, loss.rules and loss_alone.rules, with their automaton. Built once,
// since a model is bound a hundred times to find small sizes for its proof.
class ForwardRules {
 public:
  explicit ForwardRules(std::span<const rule::Rule> rules);
  ForwardRules(const ForwardRules&) = delete;
  ForwardRules& operator=(const ForwardRules&) = delete;

  std::span<const rule::Rule> rules() const { return rules_; }
  const rule::Automaton& automaton() const { return automaton_; }

 private:
  std::vector<rule::Rule> rules_;
  rule::Automaton automaton_;
};

// Applies only rules that `prove` proves.
RewrittenForward rewrite_forward(const plan::Graph& forward, const cluster::Device& device,
                                 const ForwardRules& rules, const ProveRule& prove,
                                 const ForwardRewrites& which = {});

}  // namespace weft::search
