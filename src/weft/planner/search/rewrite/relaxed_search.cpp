#include "weft/planner/search/rewrite/relaxed_search.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "weft/base/hash.h"

namespace weft::search {
namespace {

struct Horizon {
  int depth;          // moves after the first
  std::size_t width;  // number of follow-ups per move to expand, cheapest first
};

// Each is tried once the previous ones find nothing more.
constexpr Horizon kHorizons[] = {{0, 0}, {1, 0}, {2, 4}, {3, 3}};

// The value of a match: the cheapest plan reached by sequences that start with it.
struct Outlook {
  std::vector<rule::Match> moves;
  Price from, to;
  std::size_t as_of = 0;  // taken_ when this was evaluated

  bool pays() const { return to.is_below(from); }
  double gain() const { return from.seconds - to.seconds; }
  bool is_better_than(const Outlook& other) const {
    return gain() != other.gain() ? gain() > other.gain()
                                  : from.nodes - to.nodes > other.from.nodes - other.to.nodes;
  }
};

std::uint64_t key_of_match(const rule::Match& match, const Horizon& horizon) {
  Hasher hasher;
  hasher.number(static_cast<std::uint64_t>(horizon.depth)).number(match.rule);
  for (const plan::ValueId value : match.values) hasher.number(value.value);
  return hasher.digest().high;
}

class RelaxedDescent {
 public:
  explicit RelaxedDescent(Workbench& bench) : bench_(bench) {}

  // Applies what pays: at the first horizon everything, at farther ones the best and what was
  // deferred. Returns false if nothing paid.
  bool descend(const Horizon& horizon);

 private:
  bool is_news(const rule::Match& match, const Horizon& horizon) const;
  void consider(const rule::Match& match, const Horizon& horizon);
  void note_price(std::size_t base, Outlook& best);
  void look(const Horizon& horizon, int depth, std::size_t base, Outlook& best);
  bool replay(const Outlook& outlook);
  Outlook take_best_waiting();

  Workbench& bench_;
  std::vector<Outlook> waiting_;      // those that pay
  std::size_t taken_ = 0;             // number of outlooks applied
  std::vector<std::size_t> changed_;  // by node: taken_ when it last changed
  // By match and horizon: taken_ when it was last considered.
  std::unordered_map<std::uint64_t, std::size_t> considered_;
  std::unordered_set<std::uint64_t> seen_;  // plans evaluated for the current match
};

// The value of a match is unchanged if no node near it has changed since.
bool RelaxedDescent::is_news(const rule::Match& match, const Horizon& horizon) const {
  const auto known = considered_.find(key_of_match(match, horizon));
  if (known == considered_.end()) return true;
  const rule::Draft& draft = bench_.draft();
  const auto changed = [&](plan::NodeId node) {
    return node.value < changed_.size() && changed_[node.value] > known->second;
  };
  return std::ranges::any_of(match.values, [&](plan::ValueId value) {
    return changed(draft.graph().value(value).producer) ||
           (horizon.depth > 0 && std::ranges::any_of(draft.readers(value), changed));
  });
}

void RelaxedDescent::consider(const rule::Match& match, const Horizon& horizon) {
  if (bench_.spent()) return;
  considered_[key_of_match(match, horizon)] = taken_;
  Outlook outlook;
  outlook.as_of = taken_;
  outlook.from = outlook.to = bench_.price();
  const std::size_t base = bench_.moves();
  if (!bench_.take(match)) return;
  seen_.clear();
  note_price(base, outlook);
  look(horizon, horizon.depth, base, outlook);
  bench_.take_back();
  if (outlook.pays()) waiting_.push_back(std::move(outlook));
}

void RelaxedDescent::note_price(std::size_t base, Outlook& best) {
  ++bench_.counts.plans;
  if (!bench_.price().is_below(best.to)) return;
  best.to = bench_.price();
  const std::vector<rule::Match> path = bench_.path();
  best.moves.assign(path.begin() + static_cast<std::ptrdiff_t>(base), path.end());
}

void RelaxedDescent::look(const Horizon& horizon, int depth, std::size_t base, Outlook& best) {
  if (depth == 0) return;
  struct Next {
    Price price;
    rule::Match match;
  };
  std::vector<Next> next;
  for (rule::Match& match : bench_.follow_ups()) {
    if (bench_.spent()) return;
    if (!bench_.take(match)) continue;
    if (seen_.insert(bench_.ledger().fingerprint()).second) {
      note_price(base, best);
      next.push_back({bench_.price(), std::move(match)});
    }
    bench_.take_back();
  }
  if (depth == 1) return;
  std::ranges::stable_sort(next, [](const Next& a, const Next& b) {
    return a.price.seconds != b.price.seconds ? a.price.seconds < b.price.seconds
                                              : a.price.nodes < b.price.nodes;
  });
  for (std::size_t i = 0; i < std::min(next.size(), horizon.width); ++i) {
    if (!bench_.take(next[i].match)) continue;
    look(horizon, depth - 1, base, best);
    bench_.take_back();
  }
}

Outlook RelaxedDescent::take_best_waiting() {
  // The first of equals: the result must not depend on the order in a heap.
  const auto best = std::ranges::max_element(
      waiting_, [](const Outlook& a, const Outlook& b) { return b.is_better_than(a); });
  Outlook outlook = std::move(*best);
  waiting_.erase(best);
  return outlook;
}

// False if other moves made it inapplicable; the bench may then be anywhere along the sequence.
bool RelaxedDescent::replay(const Outlook& outlook) {
  return std::ranges::all_of(outlook.moves, [&](const rule::Match& match) {
    return bench_.still_matches(match) && bench_.take(match);
  });
}

bool RelaxedDescent::descend(const Horizon& horizon) {
  for (const rule::Match& match : bench_.matches())
    if (is_news(match, horizon)) consider(match, horizon);
  bool found = false;
  while (!waiting_.empty()) {
    Outlook outlook = take_best_waiting();
    const std::size_t base = bench_.moves();
    outlook.from = bench_.price();
    const bool whole = replay(outlook);
    outlook.to = bench_.price();
    const bool beaten =
        std::ranges::any_of(waiting_, [&](const Outlook& other) { return other.is_better_than(outlook); });
    if (whole && outlook.pays() && !beaten) {
      found = true;
      ++taken_;
      changed_.resize(bench_.draft().graph().node_count());
      for (const plan::NodeId node : bench_.changed(bench_.moves() - base)) changed_[node.value] = taken_;
      if (horizon.depth > 0) return true;  // return to the first horizon
      const std::vector<rule::Match> news = bench_.follow_ups(bench_.moves() - base);
      for (const rule::Match& match : news) consider(match, horizon);
      continue;
    }
    while (bench_.moves() > base) bench_.take_back();
    if (whole && outlook.pays()) {
      waiting_.push_back(std::move(outlook));
    } else if (outlook.as_of < taken_ && bench_.still_matches(outlook.moves.front())) {
      consider(outlook.moves.front(), horizon);
    }
  }
  return found;
}

}  // namespace

void relaxed_search(Workbench& bench) {
  RelaxedDescent descent(bench);
  for (std::size_t i = 0; i < std::size(kHorizons) && !bench.spent();)
    i = descent.descend(kHorizons[i]) ? 0 : i + 1;
}

}  // namespace weft::search
