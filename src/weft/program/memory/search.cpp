#include "weft/program/memory/search.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "weft/program/memory/frontier.h"
#include "weft/program/memory/preference.h"

namespace weft::memory {
namespace {

// One depth-first search with one order of preference.
class Search {
 public:
  Search(const Piece& piece, std::span<const std::uint32_t> order, Height height, std::int64_t effort)
      : effort_(effort), frontier_(piece, order, height) {}

  Verdict run(std::size_t boxes) {
    std::vector<BoxIndex> all(boxes);
    std::iota(all.begin(), all.end(), 0u);
    return solve_all(all);
  }

  std::int64_t decisions() const { return decisions_; }
  Height offset(BoxIndex box) const { return frontier_.offset(box); }

 private:
  // Parts share no moment, so each is solved once: if one fails, no other solution of the rest
  // helps. Small parts go first, because they fail fast.
  Verdict solve_all(std::span<const BoxIndex> boxes) {
    std::vector<Part> parts = frontier_.split(boxes);
    std::ranges::stable_sort(parts, {}, [](const Part& part) { return part.boxes.size(); });
    for (const Part& part : parts)
      if (const Verdict verdict = solve(part); verdict != Verdict::found) return verdict;
    return Verdict::found;
  }

  Verdict solve(const Part& part) {
    while (true) {
      if (decisions_++ >= effort_) return Verdict::out_of_effort;
      if (!frontier_.still_possible(part)) return Verdict::impossible;
      const Question question = frontier_.choose_question(part);
      for (const BoxIndex box : frontier_.candidates(part, question))
        if (const Verdict verdict = answer(part, question, box); verdict != Verdict::impossible)
          return verdict;
      if (!question.may_stay_bare) return Verdict::impossible;
      frontier_.leave_bare(question);
    }
  }

  // Places the box and solves the rest of the part. On failure, restores the whole part, since some
  // of its smaller parts may have been solved already.
  Verdict answer(const Part& part, const Question& question, BoxIndex box) {
    const Frontier::Memory before = frontier_.remember(part);
    frontier_.place(box, question.floor);
    std::vector<BoxIndex> rest = part.boxes;
    std::erase(rest, box);
    const Verdict verdict = solve_all(rest);
    if (verdict != Verdict::found) frontier_.return_to(before, part);
    return verdict;
  }

  const std::int64_t effort_;
  std::int64_t decisions_ = 0;
  Frontier frontier_;
};

}  // namespace

Outcome search(const Piece& piece, std::int64_t height, std::int64_t effort) {
  // A successful search takes about one decision per box; one that gets stuck seldom recovers.
  std::int64_t patience = 1000 + std::ssize(piece.boxes);
  Outcome outcome;
  for (std::uint64_t variant = 0; outcome.effort < effort; ++variant) {
    for (const Preference preference : kPreferences) {
      const std::vector<std::uint32_t> order = ranked(piece.boxes, preference, variant);
      Search search(piece, order, height, std::min(patience, effort - outcome.effort));
      outcome.verdict = search.run(order.size());
      outcome.effort += search.decisions();
      if (outcome.verdict == Verdict::found) {
        outcome.offsets.resize(order.size());
        for (std::uint32_t i = 0; i < order.size(); ++i) outcome.offsets[order[i]] = search.offset(i);
      }
      if (outcome.verdict != Verdict::out_of_effort) return outcome;
    }
    patience += patience / 4;
  }
  return outcome;
}

}  // namespace weft::memory
