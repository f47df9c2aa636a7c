// weft/rules/rule/draft.h -- a plan that is being rewritten.
//
//   Draft draft(graph);
//   WEFT_TRY(change, draft.apply(rule, match));     // redirects readers, adds nodes, removes dead ones
//   draft.undo();                                   // back to before that
//   plan::Graph better = draft.finish();
//
//   x --> relu --> relu --> y        relu(relu(x)) = relu(x): the readers of the second now read the
//           \________________^       first, and the second is dead
//
// Nodes are stored in a plan::Graph that only grows, so operators infer and check every new node as
// usual. On top of it the draft tracks each node's current inputs, the readers of each value, and
// which nodes are alive. Equal nodes are merged, also if a rewrite made them equal, and a node that
// was once added is found again rather than added twice. Replacing a value redirects its readers:
// the cost of a rewrite is proportional to its own size, not the plan's. A rewrite that would make
// a cycle, because its new nodes depend on the values they replace, is rejected.
//
// New nodes get the latest phase of the nodes matched, so they may read everything that those read.
// A rewrite after which an earlier phase would read them is rejected. Equal nodes in two phases are
// not merged: the backward pass recomputes a value on purpose. But the right side may read values
// that an earlier phase has already computed.
//
// Matched nodes that also have other readers stay. The rewrite then duplicates work, which the cost
// shows.
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

// The effect of a rewrite, for incremental matching and costing. Each list is sorted.
struct Change {
  std::vector<plan::NodeId> added;    // new, or alive again
  std::vector<plan::NodeId> removed;  // now dead
  std::vector<plan::NodeId> touched;  // alive before and after, with changed operands or readers
  std::vector<plan::NodeId> rewired;  // those of `touched` with changed operands
};

class Draft {
 public:
  explicit Draft(const plan::Graph& graph);
  Draft(Draft&&) = default;
  Draft& operator=(Draft&&) = default;
  Draft clone() const;  // including its undo history

  const plan::Graph& graph() const { return graph_; }                   // the store, including dead nodes
  Symbol symbol(std::string_view text) { return graph_.symbol(text); }  // adds the name if it is new
  std::span<const plan::ValueId> inputs(plan::NodeId node) const {      // current inputs
    const auto& inputs = states_[node.value].inputs;
    return {inputs.data(), inputs.size()};
  }
  std::span<const plan::NodeId> readers(plan::ValueId value) const {  // live, sorted, unique
    return readers_[value.value];
  }
  bool alive(plan::NodeId node) const { return states_[node.value].alive; }
  bool is_output(plan::ValueId value) const { return output_uses_[value.value] != 0; }
  std::span<const plan::Output> outputs() const { return outputs_; }  // current outputs
  std::size_t live_count() const { return live_count_; }
  std::vector<plan::NodeId> nodes() const;  // live nodes in execution order, the plan's own if possible

  // Fails if the right side does not fit here (types, a cycle), changes nothing, or the match is
  // out of date; the draft is then unchanged. `mesh` is for rules that use a number of ranks.
  Result<Change> apply(const Rule& rule, const Match& match, const plan::Mesh* mesh = nullptr);
  // Undoes the latest apply() that was not undone yet. REQUIRES: depth() > 0
  Change undo();
  std::size_t depth() const { return frames_.size(); }  // number of apply() calls that undo() can revert
  void keep();                                          // discards the undo history

  // The current plan: live nodes only, with labels and scopes preserved where possible.
  plan::Graph finish() const;
  // A hash of the live plan: equal for equal plans, independent of their history.
  std::uint64_t hash() const;

 private:
  struct NodeState {
    InlineVector<plan::ValueId, 3> inputs;  // current inputs
    std::uint64_t function = 0;             // hash of its operator and attributes
    bool alive = false;
    Symbol label;  // the node's own, or that of the node it replaced
  };
  // The three kinds of edits; each is undone by the same edit with the old value.
  struct Edit {
    enum class Kind : std::uint8_t { input, life, output } kind;
    plan::NodeId node;           // input and life
    std::uint32_t position = 0;  // input: operand number; output: output number
    plan::ValueId old;           // input and output
  };
  struct Frame {
    std::size_t first_edit = 0;
    Change change;
  };
  // A value and its replacement, during a rewrite.
  struct Forward {
    plan::ValueId from, to;
  };

  Draft() = default;
  void grow();  // resizes per-node and per-value data after adding to the store
  void set_input(plan::NodeId node, std::size_t position, plan::ValueId value);
  void set_alive(plan::NodeId node, bool alive);
  void set_output(std::size_t position, plan::ValueId value);
  void take_back(std::size_t first_edit);
  bool needed(plan::NodeId node) const;
  void add_reader(plan::ValueId value, plan::NodeId node);
  void drop_reader(plan::ValueId value, plan::NodeId node);
  // Which of several equal nodes may be used: those of the same phase, or also live ones of earlier
  // phases.
  enum class Taken : std::uint8_t { then, until_then };
  // A node with this operator, attributes and inputs: preferably a live one of the latest phase,
  // else the first. Ignores `except`.
  plan::NodeId find(const plan::Operator& op, const Words& words, std::uint64_t function,
                    std::span<const plan::ValueId> inputs, const plan::When& when, Taken taken = Taken::then,
                    plan::NodeId except = {}) const;

  Status check_stands(const Rule& rule, const Match& match) const;
  Result<plan::NodeId> find_or_add(const plan::Operator& op, std::span<const plan::ValueId> inputs,
                                   std::span<const plan::AttributeValue> attributes);
  Status rewrite(const Rule& rule, const Match& match, const plan::Mesh* mesh);
  // Whether the phases of all readers of `from` allow them to read `to`.
  Status check_phases(plan::ValueId from, plan::ValueId to) const;
  // Whether any of `made` depends on any of `replaced`. `safe` values are known not to.
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
  std::vector<std::uint64_t> marks_;  // by node: number of the last search that visited it
  std::uint64_t searches_ = 0;
};

}  // namespace weft::rule
