// weft/rules/rule/draft.h -- a plan that is being rewritten.
//
//   Draft draft(graph);
//   WEFT_TRY(change, draft.apply(rule, match));     // redirects, adds, lets the unused die
//   draft.undo();                                   // back to before that
//   plan::Graph better = draft.finish();
//
//   x --> relu --> relu --> y        relu(relu(x)) = relu(x): the readers of the second now read the
//           \________________^       first, and nobody needs the second any more
//
// Nodes are kept in a plan::Graph that only grows, so operators infer and check every new node as they
// do anywhere; on top of it the draft keeps what a node reads *now*, who reads a value, and which nodes
// anything still needs. Equal nodes are one node, also where a rewrite made them equal, and a node that was
// once made is found again rather than made twice. Replacing a value redirects its readers: the cost of a
// rewrite is its own size, not the plan's. No rewrite makes a cycle: one whose new nodes would depend on what
// they replace is refused.
//
// Nodes that a rewrite makes are of the latest phase of those it matched, so they may read all that those
// read; one that would make an earlier phase read them is refused. Equal nodes of two phases stay two: what
// the backward pass computes again was not kept on purpose. But the right side may read what an earlier phase
// has computed already.
//
// Matched nodes that others read, too, stay: the rewrite then duplicates work, and the cost judges that.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/base/inline_vector.h"
#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/layout.h"
#include "weft/rules/rule/node_table.h"
#include "weft/rules/rule/rule.h"

namespace weft::rule {

struct Match;

// What a rewrite did: what incremental matching and costing look at. Each list ascends.
struct Change {
  std::vector<plan::NodeId> added;    // new, or alive again
  std::vector<plan::NodeId> removed;  // no longer needed by any output
  std::vector<plan::NodeId> touched;  // alive before and after, and an operand or the readers changed
  std::vector<plan::NodeId> rewired;  // those of `touched` that read another value than before
};

class Draft {
 public:
  explicit Draft(const plan::Graph& graph);
  Draft(Draft&&) = default;
  Draft& operator=(Draft&&) = default;
  Draft clone() const;  // with its history

  const plan::Graph& graph() const { return graph_; }                   // the store: holds dead nodes too
  Symbol symbol(std::string_view text) { return graph_.symbol(text); }  // for a name that no node has yet
  std::span<const plan::ValueId> inputs(plan::NodeId node) const {      // what it reads now
    const auto& inputs = states_[node.value].inputs;
    return {inputs.data(), inputs.size()};
  }
  std::span<const plan::NodeId> readers(plan::ValueId value) const {  // alive, ascending, each once
    return readers_[value.value];
  }
  bool alive(plan::NodeId node) const { return states_[node.value].alive; }
  bool is_output(plan::ValueId value) const { return output_uses_[value.value] != 0; }
  std::span<const plan::Output> outputs() const { return outputs_; }  // as they stand now
  std::size_t live_count() const { return live_count_; }
  std::vector<plan::NodeId> nodes() const;  // those alive, in an order that runs: the plan's own where it can

  // Fails when the right side does not fit here (types, a cycle), changes nothing, or the match no longer
  // stands; the draft is then as it was. `mesh` is for rules that ask for a number of ranks.
  Result<Change> apply(const Rule& rule, const Match& match, const plan::Mesh* mesh = nullptr);
  // Takes back the latest apply() that was not taken back yet. REQUIRES: depth() > 0
  Change undo();
  std::size_t depth() const { return frames_.size(); }  // how many applies undo() can take back
  void keep();                                          // forgets how to undo what was applied so far

  // The plan as it stands: live nodes only, labels and scopes kept where they can be.
  plan::Graph finish() const;
  // Of the live plan: equal for equal plans, whatever their history.
  std::uint64_t hash() const;

 private:
  struct NodeState {
    InlineVector<plan::ValueId, 3> inputs;  // what it reads now
    std::uint64_t function = 0;             // hash of its operator and attributes
    bool alive = false;
    Symbol label;  // the node's own, or that of the node it replaced
  };
  // The three ways a draft changes, each its own inverse when told the old value.
  struct Edit {
    enum class Kind : std::uint8_t { input, life, output } kind;
    plan::NodeId node;           // of input and life
    std::uint32_t position = 0;  // of input: which operand; of output: which output
    plan::ValueId old;           // of input and output
  };
  struct Frame {
    std::size_t first_edit = 0;
    Change change;
  };
  // A value that another stands for, while a rewrite runs.
  struct Forward {
    plan::ValueId from, to;
  };

  Draft() = default;
  void grow();  // makes room for nodes that were added to the store
  void set_input(plan::NodeId node, std::size_t position, plan::ValueId value);
  void set_alive(plan::NodeId node, bool alive);
  void set_output(std::size_t position, plan::ValueId value);
  void take_back(std::size_t first_edit);
  bool needed(plan::NodeId node) const;
  void add_reader(plan::ValueId value, plan::NodeId node);
  void drop_reader(plan::ValueId value, plan::NodeId node);
  // Of nodes that compute the same, which may be taken: those that run then, or live ones that ran earlier
  // too.
  enum class Taken : std::uint8_t { then, until_then };
  // A node that computes this: a live one, the latest, or else the first that did. `except` is not looked at.
  plan::NodeId find(const plan::Operator& op, const Words& words, std::uint64_t function,
                    std::span<const plan::ValueId> inputs, const plan::When& when, Taken taken = Taken::then,
                    plan::NodeId except = {}) const;

  Status check_stands(const Rule& rule, const Match& match) const;
  Result<plan::NodeId> find_or_add(const plan::Operator& op, std::span<const plan::ValueId> inputs,
                                   std::span<const plan::AttributeValue> attributes);
  Status rewrite(const Rule& rule, const Match& match, const plan::Mesh* mesh);
  // Whether all that read `from` may read `to`, as their phases are.
  Status check_phases(plan::ValueId from, plan::ValueId to) const;
  // Whether one of `made` is computed from one of `replaced`. `safe` values are known not to be.
  bool depends(std::span<const plan::ValueId> made, std::span<const plan::ValueId> replaced,
               std::span<const plan::ValueId> safe);
  void redirect(plan::ValueId from, plan::ValueId to, std::vector<Forward>& forwards);
  void sweep(std::vector<plan::NodeId> candidates);
  Change change_since(std::size_t first_edit) const;

  plan::Graph graph_;
  std::vector<NodeState> states_;                   // by node
  std::vector<std::vector<plan::NodeId>> readers_;  // by value
  std::vector<plan::Output> outputs_;
  std::vector<std::uint32_t> output_uses_;  // by value
  NodeTable table_;
  std::size_t live_count_ = 0;
  std::vector<Edit> edits_;
  std::vector<Frame> frames_;
  std::vector<std::uint64_t> marks_;  // by node: which search came by last
  std::uint64_t searches_ = 0;
};

}  // namespace weft::rule
