#include "weft/rules/equation/fingerprint_table.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <tuple>
#include <utility>

namespace weft::equation {
namespace {

// The minimum that a pass processes, however little memory is left.
constexpr std::size_t kFewestEntries = 64;
constexpr std::int32_t kMostParts = 1 << 16;

}  // namespace

void FingerprintTable::clear(std::int64_t most_bytes) {
  entries_.clear();
  // A growing table briefly exists twice, hence a third.
  most_entries_ = most_bytes < 0
                      ? std::numeric_limits<std::size_t>::max()
                      : std::max(static_cast<std::size_t>(most_bytes) / sizeof(Entry) / 3, kFewestEntries);
}

bool FingerprintTable::wants(std::uint64_t fingerprint) const {
  return fingerprint % static_cast<std::uint64_t>(parts_) == static_cast<std::uint64_t>(part_);
}

void FingerprintTable::enter(const Entry& entry) {
  entries_.push_back(entry);
  // Later parts are statistically as large as the first, so only the first is split.
  if (part_ != 0 || entries_.size() < most_entries_ || parts_ >= kMostParts) return;
  parts_ *= 2;
  std::erase_if(entries_, [&](const Entry& each) { return !wants(each.fingerprint); });
}

std::vector<FingerprintTable::Run> FingerprintTable::runs(const TermTable& terms) {
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.fingerprint, a.head, a.operands) < std::tie(b.fingerprint, b.head, b.operands);
  });
  std::vector<Run> runs;
  for (std::size_t begin = 0; begin < entries_.size();) {
    std::size_t end = begin;
    bool fresh = false;
    for (; end < entries_.size() && entries_[end].fingerprint == entries_[begin].fingerprint; ++end)
      fresh = fresh || entries_[end].head != kStored;
    if (fresh && end - begin > 1) runs.push_back(run_of(terms, begin, end));
    begin = end;
  }
  std::stable_sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
    return std::tie(a.order, a.inputs) < std::tie(b.order, b.inputs);
  });
  return runs;
}

FingerprintTable::Run FingerprintTable::run_of(const TermTable& terms, std::size_t begin,
                                               std::size_t end) const {
  std::array<std::uint64_t, 2> smallest = {0xffff, 0xffff};  // weights: the size of the candidate rule
  std::uint64_t inputs = 0;
  for (std::size_t k = begin; k < end; ++k) {
    const Entry& entry = entries_[k];
    const Term term =
        entry.head == kStored ? terms[entry.operands[0]] : terms.make(entry.head, 0, entry.operands);
    inputs |= term.inputs;
    if (term.weight < smallest[1]) smallest[1] = term.weight;
    if (smallest[1] < smallest[0]) std::swap(smallest[0], smallest[1]);
  }
  const auto more_general = static_cast<std::uint64_t>(64 - std::popcount(inputs));
  return {begin, end - begin, (smallest[0] + smallest[1]) << 16 | more_general, inputs};
}

}  // namespace weft::equation
