// weft/planner/search/rewrite/ledger.h -- what a draft costs, kept up to date.
//
//   Ledger ledger(draft, pricing, counts);      prices every node once
//   ledger.follow(change);                      a rewrite: prices what is new
//   ledger.back();                              and as if it had not been
//
// A node counts when an output needs it and it depends on an input; what depends on parameters and constants
// alone is computed before. Both are kept for each node, so a rewrite is priced by its own size.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/transplant.h"
#include "weft/planner/search/rewrite/pricing.h"
#include "weft/rules/rule/draft.h"

namespace weft::search {

// What plans are compared by: their seconds, and where those are equal the nodes that run.
struct Price {
  double seconds = 0;
  std::int64_t nodes = 0;

  // By more than rounding.
  bool is_below(const Price& other) const;
};

class Ledger {
 public:
  // `priced` counts the calls of the cost model. REQUIRES: all arguments outlive it.
  Ledger(const rule::Draft& draft, const Pricing& pricing, std::int64_t& priced);

  Price price() const { return price_; }
  void follow(const rule::Change& change);
  void back();  // takes back the latest follow()

  // Of the plan as it stands: which nodes live and what they read. Equal for equal plans of one draft, unless
  // they came to the same by ways on which a node was once made and once rewired.
  std::uint64_t fingerprint() const;

  bool runs(plan::NodeId node) const { return node.value < entries_.size() && entries_[node.value].runs; }

 private:
  struct Entry {
    double seconds = 0;
    bool runs = false;       // needed by an output, and depends on an input
    std::uint64_t mark = 0;  // of a live node and what it reads

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
  std::vector<double> as_made_;                 // the price of a node that reads what it was made with
  std::unordered_map<Digest, double> rewired_;  // of one that reads something else by now
  plan::Graph scratch_;                         // where those are made anew to be priced
  plan::Transplant to_scratch_;
  std::unordered_map<std::uint32_t, plan::ValueId> leaves_;  // an operand of each type, in scratch_
  std::vector<Kept> journal_;
  std::vector<Mark> marks_;
};

}  // namespace weft::search
