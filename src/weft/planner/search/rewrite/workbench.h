// weft/planner/search/rewrite/workbench.h -- a draft and its cost, for trying and undoing moves.
//
//   bench.take(match)      one explore rewrite, then all normalize rewrites that it enables
//   bench.price()          cost of the current plan
//   bench.follow_ups()     matches related to the latest move
//   bench.take_back()
//
// Searches differ only in the order of these operations. The bench counts them and reports when the
// budget is spent.
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
  std::int64_t nodes = std::numeric_limits<std::int64_t>::max();     // made, including dead ones
  std::optional<std::chrono::steady_clock::time_point> deadline;
};

class Workbench {
 public:
  // Normalizes the plan, which cannot be undone. REQUIRES: all arguments outlive it.
  Workbench(const plan::Graph& graph, const RuleBook& rules, const Pricing& pricing, const Limits& limits);
  Workbench(const Workbench&) = delete;
  Workbench& operator=(const Workbench&) = delete;

  const rule::Draft& draft() const { return draft_; }
  const RuleBook& rules() const { return rules_; }
  Price price() const { return ledger_.price(); }
  Price price_at_start() const { return at_start_; }  // before normalizing
  const Ledger& ledger() const { return ledger_; }

  // False if the rule does not apply here; why_not() then gives the reason.
  bool take(const rule::Match& match);
  const std::string& why_not() const { return why_not_; }
  void take_back();  // REQUIRES: moves() > 0
  std::size_t moves() const { return moves_.size(); }

  std::vector<rule::Match> matches();  // of explore rules, in order
  // Matches that share a value with what the latest `moves` moves changed.
  std::vector<rule::Match> follow_ups(std::size_t moves = 1);
  // Nodes that run and that the latest `moves` moves made or rewired, or whose readers they
  // changed.
  std::vector<plan::NodeId> changed(std::size_t moves) const;
  bool still_matches(const rule::Match& match) const;

  // The moves from the start to the current plan; go_to() replays them.
  std::vector<rule::Match> path() const;
  bool go_to(std::span<const rule::Match> path);  // false if a step fails; the bench is then part of the way

  // The rewrites of all moves, including normalization.
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
    std::vector<plan::NodeId> changed;  // that were alive after the move
    std::vector<plan::NodeId> roots;    // where matches may have appeared or disappeared
  };

  // Adds to `roots` the roots at which normalize rules may match now.
  bool rewrite(const rule::Rule& rule, const rule::Match& match, Move& move,
               std::vector<plan::NodeId>& roots);
  void normalize(std::vector<plan::NodeId> roots, Move& move);
  std::vector<plan::NodeId> readers_of(std::span<const plan::NodeId> nodes) const;

  const RuleBook& rules_;
  Limits limits_;
  rule::Draft draft_;
  Ledger ledger_;
  Price at_start_;
  std::size_t first_made_;  // nodes of the original graph come before
  Move beginning_;          // the initial normalization
  std::vector<Move> moves_;
  std::string why_not_;
};

}  // namespace weft::search
