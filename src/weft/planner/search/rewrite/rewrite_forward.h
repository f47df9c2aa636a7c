// weft/planner/search/rewrite/rewrite_forward.h -- rules that fire before a plan learns.
//
//   contract, softmax, contract ──rules/attention.rules──▶ attention ──differentiate──▶ attention-gradient
//   contract, cross-entropy, sum ───rules/loss.rules───▶ linear-cross-entropy ──differentiate──▶ mul
//                               rules/loss_alone.rules   the same without slopes, of plans that do not learn
//
// The backward pass of a composition reads what the composition made along the way, so that after it nothing can
// be fused any more that memory would be saved by. These rules therefore come first, in TRAIN as in INFER. Each
// is taken wherever it stands and pays by its price on the device: that of a loss counts its gradients, which
// linear-cross-entropy makes along with it.
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
  std::optional<plan::Graph> plan;  // none: it stays as it is
  std::vector<Step> trail;
};

struct ForwardRewrites {
  bool attention = true;
  // Losses whose logits have at least so many bytes, where that pays; 0: all that a kernel can tile; none: not any.
  std::optional<std::int64_t> logits_from = std::nullopt;
  bool learns = true;  // losses are made with their slopes, and priced so
};

// Of a library the rules of attention.rules, loss.rules and loss_alone.rules, and what finds them in a plan: made once,
// as a model is bound a hundred times while small sizes for its proof are looked for.
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

// None fires that `prove` does not prove.
RewrittenForward rewrite_forward(const plan::Graph& forward, const cluster::Device& device,
                                 const ForwardRules& rules, const ProveRule& prove,
                                 const ForwardRewrites& which = {});

}  // namespace weft::search
