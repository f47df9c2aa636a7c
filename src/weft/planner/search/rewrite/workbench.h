// weft/planner/search/rewrite/workbench.h -- a draft with its price, where moves are tried and taken back.
//
//   bench.take(match)      one rewrite of the cost's choosing, then every normalize rewrite it makes possible
//   bench.price()          of the plan as it stands now
//   bench.follow_ups()     what the latest move makes interesting
//   bench.take_back()
//
// Searches differ only in the order in which they do this. The bench counts what they do and says when
// their budget is spent.
#pragma once
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/planner/search/rewrite/ledger.h"
#include "weft/planner/search/rewrite/rule_book.h"
#include "weft/planner/search/rewrite/trail.h"
#include "weft/rules/rule/draft.h"
#include "weft/rules/rule/match.h"

namespace weft::search {

struct Limits {
  std::int64_t rewrites = std::numeric_limits<std::int64_t>::max();  // tried
  std::int64_t nodes = std::numeric_limits<std::int64_t>::max();     // made, dead ones included
  std::optional<std::chrono::steady_clock::time_point> deadline;
};

class Workbench {
 public:
  // Normalizes the plan, for good: that cannot be taken back. REQUIRES: all arguments outlive it.
  Workbench(const plan::Graph& graph, const RuleBook& rules, const Pricing& pricing, const Limits& limits);
  Workbench(const Workbench&) = delete;
  Workbench& operator=(const Workbench&) = delete;

  const rule::Draft& draft() const { return draft_; }
  const RuleBook& rules() const { return rules_; }
  Price price() const { return ledger_.price(); }
  Price price_at_start() const { return at_start_; }  // before normalizing
  const Ledger& ledger() const { return ledger_; }

  // False when the rule does not fit here: why_not() then says what is wrong.
  bool take(const rule::Match& match);
  const std::string& why_not() const { return why_not_; }
  void take_back();  // REQUIRES: moves() > 0
  std::size_t moves() const { return moves_.size(); }

  std::vector<rule::Match> matches();  // of explore rules, in order
  // Those that share a value with what the latest `moves` moves changed.
  std::vector<rule::Match> follow_ups(std::size_t moves = 1);
  // Nodes that run and that the latest `moves` moves made or rewired, or whose readers they changed.
  std::vector<plan::NodeId> changed(std::size_t moves) const;
  bool still_matches(const rule::Match& match) const;

  // The way here from the start, and back to any plan from which it is known.
  std::vector<rule::Match> path() const;
  bool go_to(std::span<const rule::Match> path);  // false when a step declines; the bench is then on the way

  // The rewrites of all moves, normalizing included.
  std::vector<Step> trail() const;
  std::string describe(plan::NodeId node) const;
  std::vector<std::string> describe(std::span<const plan::NodeId> nodes) const;

  std::optional<Stopped> spent() const;
  Counts counts;

 private:
  struct Rewrite {
    const rule::Rule* rule;
    std::vector<plan::NodeId> nodes;
    double change;
  };
  struct Move {
    rule::Match match;
    std::vector<Rewrite> rewrites;
    std::vector<plan::NodeId> changed;  // and alive when the move was made
    std::vector<plan::NodeId> roots;    // where matches may have come or gone
  };

  // Adds the roots of normalize rules that may match now to `roots`.
  bool rewrite(const rule::Rule& rule, const rule::Match& match, Move& move,
               std::vector<plan::NodeId>& roots);
  void normalize(std::vector<plan::NodeId> roots, Move& move);
  std::vector<plan::NodeId> readers_of(std::span<const plan::NodeId> nodes) const;

  const RuleBook& rules_;
  Limits limits_;
  rule::Draft draft_;
  Ledger ledger_;
  Price at_start_;
  std::size_t first_made_;  // nodes of the graph as it was given come before
  Move beginning_;          // what normalizing did at first
  std::vector<Move> moves_;
  std::string why_not_;
};

}  // namespace weft::search
