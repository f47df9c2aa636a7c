// weft/planner/search/rewrite/ledger.h -- incrementally maintained cost of a draft.
//
//   Ledger ledger(draft, pricing, counts);      evaluates every node once
//   ledger.follow(change);                      a rewrite: evaluates new nodes
//   ledger.back();                              undoes it
//
// A node counts if an output needs it and it depends on an input. Values that depend only on
// parameters and constants are computed in advance. Both are stored per node, so the cost of
// updating is proportional to the rewrite.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/transplant.h"
#include "weft/planner/search/rewrite/pricing.h"
#include "weft/rules/rule/draft.h"

namespace weft::search {

// Plans are compared by seconds, and at equal seconds by the number of nodes that run.
struct Price {
  double seconds = 0;
  std::int64_t nodes = 0;

  // By more than rounding error.
  bool is_below(const Price& other) const;
};

class Ledger {
 public:
  // `priced` counts calls of the cost model. REQUIRES: all arguments outlive it.
  Ledger(const rule::Draft& draft, const Pricing& pricing, std::int64_t& priced);

  Price price() const { return price_; }
  void follow(const rule::Change& change);
  void back();  // undoes the latest follow()

  // Of the current plan: live nodes and their operands. Equal for equal plans of one draft, unless
  // a node was newly made in one and rewired in the other.
  std::uint64_t fingerprint() const;

  bool runs(plan::NodeId node) const { return node.value < entries_.size() && entries_[node.value].runs; }

 private:
  struct Entry {
    double seconds = 0;
    bool runs = false;       // needed by an output, and depends on an input
    std::uint64_t mark = 0;  // hash of a live node and its operands

    friend bool operator==(const Entry&, const Entry&) = default;
  };
  struct Kept {
    plan::NodeId node;
    Entry entry;
  };
  struct Mark {
    std::size_t journal;
    Price price;
    std::uint64_t marks;
  };

  Entry judge(plan::NodeId node);
  void set(plan::NodeId node, const Entry& after);
  double seconds_now(plan::NodeId node);
  bool reads_as_made(plan::NodeId node, int depth = 0) const;
  double seconds_rewired(plan::NodeId node);
  void feed_operands(Hasher& hasher, plan::NodeId node, int depth) const;
  plan::ValueId rebuilt(plan::ValueId value, int depth);
  void settle(std::vector<plan::NodeId> waiting);

  const rule::Draft& draft_;
  const Pricing& pricing_;
  std::int64_t& priced_;
  std::vector<Entry> entries_;
  Price price_;
  std::uint64_t sum_of_marks_ = 0;
  std::vector<double> as_made_;                 // cost of a node with its original operands
  std::unordered_map<Digest, double> rewired_;  // cost of a node with other operands
  plan::Graph scratch_;                         // holds copies of rewired nodes for evaluation
  plan::Transplant to_scratch_;
  std::unordered_map<std::uint32_t, plan::ValueId> leaves_;  // one operand per type, in scratch_
  std::vector<Kept> journal_;
  std::vector<Mark> marks_;
};

}  // namespace weft::search
