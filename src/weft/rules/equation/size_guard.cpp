#include "weft/rules/equation/size_guard.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft::equation {
namespace {

using SizeBits = std::vector<std::uint64_t>;

constexpr std::size_t kMostSizeAtoms = 6;     // per guard
constexpr std::size_t kMostCandidates = 400;  // atoms considered
constexpr std::int32_t kMostDims = 64;        // with more, comparing all pairs of dims is too expensive

int count(const SizeBits& bits) {
  int total = 0;
  for (const std::uint64_t word : bits) total += std::popcount(word);
  return total;
}

SizeBits both_sizes(SizeBits a, const SizeBits& b) {
  for (std::size_t k = 0; k < a.size(); ++k) a[k] &= b[k];
  return a;
}

// The samples at which an atom holds.
SizeBits truth(const GuardAtom& atom, std::span<const SizeSample> samples) {
  SizeBits bits((samples.size() + 63) / 64, 0);
  for (std::size_t k = 0; k < samples.size(); ++k)
    if (holds(atom, samples[k])) bits[k / 64] |= std::uint64_t{1} << (k % 64);
  return bits;
}

struct Candidate {
  const GuardAtom* atom;
  SizeBits good, bad;  // samples at which it holds
};

// The fraction of good samples kept, minus a small penalty per atom.
double worth(int kept, int all, int cost) {
  return static_cast<double>(kept) / std::max(all, 1) - 0.01 * cost;
}

class SizeGuardSearch {
 public:
  SizeGuardSearch(std::span<const GuardAtom> atoms, const SizeSample& example,
                  std::span<const SizeSample> good, std::span<const SizeSample> bad)
      : goods_(static_cast<int>(good.size())), bads_(static_cast<int>(bad.size())) {
    for (const GuardAtom& atom : atoms) {
      if (candidates_.size() == kMostCandidates) break;
      if (!holds(atom, example)) continue;
      Candidate candidate{&atom, truth(atom, good), truth(atom, bad)};
      if (count(candidate.bad) == bads_) continue;  // excludes no failure
      const auto twin = std::ranges::find_if(candidates_, [&](const Candidate& other) {
        return other.good == candidate.good && other.bad == candidate.bad;
      });
      if (twin == candidates_.end())
        candidates_.push_back(std::move(candidate));
      else if (atom.cost < twin->atom->cost)
        *twin = std::move(candidate);
    }
  }

  std::optional<SizeGuard> find() {
    for (const Candidate& one : candidates_) {
      if (count(one.bad) == 0) offer({&one}, one.good);
      for (const Candidate& two : candidates_)
        if (&one < &two && count(both_sizes(one.bad, two.bad)) == 0)
          offer({&one, &two}, both_sizes(one.good, two.good));
    }
    greedy();
    if (best_.empty()) return std::nullopt;
    SizeGuard guard;
    std::ranges::sort(best_);
    for (const Candidate* chosen : best_) guard.atoms.push_back(*chosen->atom);
    return guard;
  }

 private:
  void offer(std::vector<const Candidate*> chosen, const SizeBits& good) {
    int cost = 0;
    for (const Candidate* candidate : chosen) cost += candidate->atom->cost;
    const double value = worth(count(good), goods_, cost);
    if (!best_.empty() && value <= best_worth_) return;
    best_ = std::move(chosen);
    best_worth_ = value;
  }

  // Repeatedly takes the atom that excludes most failures relative to the good samples it loses.
  void greedy() {
    std::vector<const Candidate*> chosen;
    if (candidates_.empty()) return;
    SizeBits good(candidates_[0].good.size(), ~std::uint64_t{0}),
        bad(candidates_[0].bad.size(), ~std::uint64_t{0});
    int left = bads_, kept = goods_;
    while (left > 0 && chosen.size() < kMostSizeAtoms) {
      const Candidate* next = nullptr;
      double most = 0;
      for (const Candidate& candidate : candidates_) {
        const int ruled_out = left - count(both_sizes(bad, candidate.bad));
        if (ruled_out == 0) continue;
        const int lost = kept - count(both_sizes(good, candidate.good));
        const double gain = ruled_out / (1.0 + 4.0 * lost + 0.1 * candidate.atom->cost);
        if (next == nullptr || gain > most) next = &candidate, most = gain;
      }
      if (next == nullptr) return;
      good = chosen.empty() ? next->good : both_sizes(good, next->good);
      bad = chosen.empty() ? next->bad : both_sizes(bad, next->bad);
      chosen.push_back(next);
      left = count(bad), kept = count(good);
    }
    if (left > 0) return;
    drop_needless(chosen);
    good = chosen[0]->good;
    for (const Candidate* candidate : chosen) good = both_sizes(good, candidate->good);
    offer(chosen, good);
  }

  void drop_needless(std::vector<const Candidate*>& chosen) const {
    for (std::size_t k = chosen.size(); k-- > 0 && chosen.size() > 1;) {
      SizeBits bad(chosen[0]->bad.size(), ~std::uint64_t{0});
      for (std::size_t other = 0; other < chosen.size(); ++other)
        if (other != k) bad = both_sizes(std::move(bad), chosen[other]->bad);
      if (count(bad) == 0) chosen.erase(chosen.begin() + static_cast<std::ptrdiff_t>(k));
    }
  }

  int goods_, bads_;
  std::vector<Candidate> candidates_;
  std::vector<const Candidate*> best_;
  double best_worth_ = 0;
};

}  // namespace

bool holds(const GuardAtom& atom, const SizeSample& sample) {
  return condition_on(atom, sample.ranks).holds(sample.values);
}

SizeCondition condition_on(const GuardAtom& atom, std::int32_t ranks) {
  SizeCondition condition = atom.condition;
  if (atom.about_ranks) condition.parts = ranks;
  return condition;
}

bool SizeGuard::holds(const SizeSample& sample) const {
  return std::ranges::all_of(atoms, [&](const GuardAtom& atom) { return equation::holds(atom, sample); });
}

std::string SizeGuard::text() const {
  std::vector<std::string_view> texts;
  for (const GuardAtom& atom : atoms) texts.push_back(atom.text);
  return fmt::format("{}", fmt::join(texts, " and "));
}

std::vector<GuardAtom> guard_atoms(const Equation& equation, const SizeConditions& source,
                                   const SizeConditions* target) {
  std::vector<GuardAtom> atoms;
  const auto add = [&](SizeCondition condition, std::int32_t cost, std::string text = {},
                       bool about_ranks = false) {
    if (!condition.only_below(source.inputs)) return;
    if (text.empty()) text = print(condition, source, equation);
    if (!text.empty()) atoms.push_back({std::move(condition), std::move(text), cost, about_ranks});
  };
  const auto unknown = [](std::int32_t which) { return Linear{0, {{which, 1}}}; };

  for (const SizeConditions* side : {&source, target}) {
    if (side == nullptr) continue;
    for (const SizeCondition& condition : side->all) {
      if (condition.kind != SizeCondition::Kind::grouped) continue;
      // One group: image and weight have the same number of channels.
      std::string text;
      for (std::size_t k = 0; k < source.dims.size(); ++k)
        if (source.dims[k].size() == 4 && condition.b == unknown(source.dims[k][1]) && side == &source)
          text = fmt::format("groups({}) = 1", equation.inputs[k].name);
      add({.kind = SizeCondition::Kind::equal, .a = condition.a, .b = condition.b, .c = {}},
          text.empty() ? 2 : 1, text);
    }
  }
  if (target != nullptr)
    for (const SizeCondition& condition : target->all)
      if (condition.kind == SizeCondition::Kind::equal || condition.kind == SizeCondition::Kind::divides ||
          condition.kind == SizeCondition::Kind::at_least)
        add(condition, condition.a.terms.size() + condition.b.terms.size() > 2 ? 2 : 1);
  // A size that the source fixes is a constant: `= 1` is clearer than an equation with it.
  const auto fixed = [&](std::int32_t which) {
    return std::ranges::any_of(source.all, [&](const SizeCondition& condition) {
      return condition.kind == SizeCondition::Kind::equal &&
             ((condition.a == unknown(which) && condition.b.terms.empty()) ||
              (condition.b == unknown(which) && condition.a.terms.empty()));
    });
  };
  for (std::int32_t one = 0; one < source.inputs; ++one) {
    if (source.inputs > kMostDims || fixed(one)) continue;
    for (std::int32_t two = one + 1; two < source.inputs; ++two)
      if (!fixed(two))
        add({.kind = SizeCondition::Kind::equal, .a = unknown(one), .b = unknown(two), .c = {}}, 2);
    add({.kind = SizeCondition::Kind::equal, .a = unknown(one), .b = Linear{1, {}}, .c = {}}, 3);
    if (equation.distributed()) {
      const SizeCondition whole{.kind = SizeCondition::Kind::divides, .a = unknown(one), .b = {}, .c = {}};
      std::string text = print(whole, source, equation);
      text.replace(text.find('(') + 1, 1, "ranks");
      add(whole, 2, text, true);
    }
  }
  return atoms;
}

std::optional<SizeGuard> find_guard(std::span<const GuardAtom> atoms, const SizeSample& example,
                                    std::span<const SizeSample> good, std::span<const SizeSample> bad) {
  return SizeGuardSearch(atoms, example, good, bad).find();
}

}  // namespace weft::equation
