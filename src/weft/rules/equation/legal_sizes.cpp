#include "weft/rules/equation/legal_sizes.h"

#include <algorithm>
#include <numeric>

#include "weft/rules/equation/lower_operation.h"

namespace weft::equation {
namespace {

constexpr int kMostRepairs = 48;
constexpr std::int32_t kWideTurns = 6;  // one in this many draws has a large size
constexpr std::int64_t kLargestKernel = 3;
constexpr std::int64_t kLargestLegalSize = 1 << 16;  // larger sizes are not tried; keeps sums within 64 bits

std::int64_t small_size(Random& random, std::int64_t largest) {
  // Ones and twos expose most mistakes and are cheap.
  return random.below(3) == 0 ? 1 : random.between(1, largest);
}

}  // namespace

LegalSizes::LegalSizes(const Equation& equation, SizeConditions conditions)
    : conditions_(std::move(conditions)), small_(static_cast<std::size_t>(conditions_.unknowns), false) {
  for (const auto* side : {&equation.source, &equation.target})
    for (const Operation& operation : *side)
      if (operation.verb == Verb::conv2d && operation.operands[1].operation < 0) {
        const auto& dims = conditions_.dims[static_cast<std::size_t>(operation.operands[1].result)];
        for (std::size_t d = 2; d < dims.size(); ++d) small_[static_cast<std::size_t>(dims[d])] = true;
      }
  join();
}

void LegalSizes::require(std::span<const SizeCondition> more) {
  conditions_.all.insert(conditions_.all.end(), more.begin(), more.end());
  join();
}

// Merges unknowns that must be equal, and fixes those that must be a given number.
void LegalSizes::join() {
  heads_.resize(static_cast<std::size_t>(conditions_.unknowns));
  std::iota(heads_.begin(), heads_.end(), std::size_t{0});
  fixed_.assign(heads_.size(), 0);
  const auto merge = [&](std::size_t a, std::size_t b) {
    if (fixed_[b] != 0) fixed_[a] = fixed_[b];
    for (std::size_t& head : heads_)
      if (head == b) head = a;
  };
  for (const SizeCondition& condition : conditions_.all) {
    if (condition.kind != SizeCondition::Kind::equal) continue;
    if (condition.a.is_unknown() && condition.b.is_unknown()) {
      const std::size_t a = head(condition.a.terms[0].first), b = head(condition.b.terms[0].first);
      if (a != b) merge(std::min(a, b), std::max(a, b));
    } else if (condition.a.is_unknown() && condition.b.terms.empty()) {
      fixed_[head(condition.a.terms[0].first)] = condition.b.constant;
    } else if (condition.b.is_unknown() && condition.a.terms.empty()) {
      fixed_[head(condition.b.terms[0].first)] = condition.a.constant;
    }
  }
  open_.clear();
  for (const SizeCondition& condition : conditions_.all) {
    SizeCondition left = condition;
    left.a = headed(condition.a), left.b = headed(condition.b), left.c = headed(condition.c);
    if (left.kind == SizeCondition::Kind::equal && left.a == left.b) continue;
    if (std::ranges::find(open_, left) == open_.end()) open_.push_back(std::move(left));
  }
}

Linear LegalSizes::headed(const Linear& size) const {
  Linear result{size.constant, {}};
  for (const auto& [unknown, factor] : size.terms) {
    const std::size_t head_of = head(unknown);
    if (fixed_[head_of] != 0)
      result.constant += factor * fixed_[head_of];
    else
      result = result + Linear{0, {{static_cast<std::int32_t>(head_of), factor}}};
  }
  return result;
}

std::vector<std::int64_t> LegalSizes::begin(Random& random, std::int32_t turn, std::int64_t largest) const {
  std::vector<std::int64_t> values(heads_.size(), 1);
  std::vector<std::pair<std::int64_t, std::int64_t>> stand_ins;  // example size -> drawn size
  const auto stand_in = [&](std::int64_t example) {
    for (const auto& [from, to] : stand_ins)
      if (from == example) return to;
    stand_ins.emplace_back(example, small_size(random, largest));
    return stand_ins.back().second;
  };
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (heads_[k] != k) continue;
    const std::int64_t like = stand_in(conditions_.example[k]), own = small_size(random, largest);
    const bool alike = turn % 3 == 0 || (turn % 3 == 2 && random.below(2) == 0);
    values[k] = alike ? like : own;
    if (small_[k]) values[k] = std::min(values[k], kLargestKernel);
    if (fixed_[k] != 0) values[k] = fixed_[k];
  }
  for (std::size_t k = 0; k < values.size(); ++k) values[k] = values[heads_[k]];
  return values;
}

// Picks the groups of a convolution and makes image and weight match them.
void LegalSizes::group(Random& random, std::vector<std::int64_t>& values, const SizeCondition& convolution,
                       bool apart) const {
  const std::int64_t channels = std::max<std::int64_t>(convolution.a.at(values), 1);
  std::int64_t inputs = 1, groups = 1;
  if (!apart) {
    inputs = channels;
  } else if (random.below(2) == 0) {  // depthwise
    groups = std::max<std::int64_t>(channels, 2);
  } else {
    groups = random.between(2, 3), inputs = random.between(1, 2);
  }
  set(random, values, convolution.b, inputs);
  set(random, values, convolution.a, convolution.b.at(values) * groups);
  set(random, values, convolution.c, groups * random.between(1, 2));
}

// Changes one unknown of `size` so that its value becomes `wanted`. False if that is impossible.
bool LegalSizes::set(Random& random, std::vector<std::int64_t>& values, const Linear& size,
                     std::int64_t wanted) const {
  if (size.terms.empty()) return size.constant == wanted;
  const std::size_t first = random.below(size.terms.size());
  for (std::size_t k = 0; k < size.terms.size(); ++k) {
    const auto& [unknown, factor] = size.terms[(first + k) % size.terms.size()];
    const auto at = static_cast<std::size_t>(unknown);
    const std::int64_t missing = wanted - size.at(values) + factor * values[at];
    if (missing % factor != 0 || missing / factor < 1 || missing / factor > kLargestLegalSize) continue;
    values[at] = missing / factor;
    return true;
  }
  return false;
}

bool LegalSizes::mend(Random& random, std::vector<std::int64_t>& values, const SizeCondition& condition,
                      std::int64_t largest) const {
  const std::int64_t a = condition.a.at(values), b = condition.b.at(values), c = condition.c.at(values);
  const bool left = random.below(2) == 0;
  switch (condition.kind) {
    case SizeCondition::Kind::equal:
      return set(random, values, left ? condition.a : condition.b, left ? b : a) ||
             set(random, values, left ? condition.b : condition.a, left ? a : b);
    case SizeCondition::Kind::at_least:
      return set(random, values, condition.a, b) || set(random, values, condition.b, a);
    case SizeCondition::Kind::divides:
      return set(random, values, condition.a,
                 condition.parts * random.between(1, std::max<std::int64_t>(largest / condition.parts, 1)));
    case SizeCondition::Kind::windows: {
      if (c < 1 || b < 1) return false;
      const std::int64_t count = windows_along(c, b, condition.stride, condition.same_padding).count;
      if (count < 1) return set(random, values, condition.c, b + random.between(0, 2));
      return set(random, values, condition.a, count);
    }
    case SizeCondition::Kind::slice:
      if (b < condition.parts)
        return set(random, values, condition.b, condition.parts + random.between(0, 3));
      return set(random, values, condition.a, b / condition.parts) ||
             set(random, values, condition.b, a * condition.parts);
    case SizeCondition::Kind::grouped: {
      if (b >= 1 && a >= 1 && a % b == 0) {
        const std::int64_t groups = a / b;
        return set(random, values, condition.c, groups * random.between(1, 2)) ||
               set(random, values, condition.b, a);
      }
      if (left && set(random, values, condition.a, std::max<std::int64_t>(b, 1) * random.between(1, 2)))
        return true;
      return set(random, values, condition.b, random.below(2) == 0 ? a : 1);
    }
  }
  return false;
}

// Makes one size much larger than the others.
void LegalSizes::widen(Random& random, std::vector<std::int64_t>& values) const {
  const std::size_t chosen = random.below(values.size());
  if (fixed_[heads_[chosen]] != 0 || small_[heads_[chosen]]) return;
  values[heads_[chosen]] = random.between(6, 17);
  for (std::size_t k = 0; k < values.size(); ++k) values[k] = values[heads_[k]];
}

std::optional<InputSizes> LegalSizes::draw(Random& random, std::int32_t turn, std::int64_t largest) const {
  std::vector<std::int64_t> values = begin(random, turn, largest);
  if (turn % kWideTurns == kWideTurns - 1 && !values.empty()) widen(random, values);
  for (const SizeCondition& condition : open_)
    if (condition.kind == SizeCondition::Kind::grouped && turn % 3 != 0)
      group(random, values, condition, turn % 2 == 1 || random.below(4) == 0);
  for (int step = 0; step < kMostRepairs; ++step) {
    const std::size_t first = open_.empty() ? 0 : random.below(open_.size());
    const SizeCondition* broken = nullptr;
    for (std::size_t k = 0; k < open_.size() && broken == nullptr; ++k)
      if (!open_[(first + k) % open_.size()].holds(values)) broken = &open_[(first + k) % open_.size()];
    if (broken == nullptr) {
      for (std::size_t k = 0; k < values.size(); ++k)
        values[k] = fixed_[heads_[k]] != 0 ? fixed_[heads_[k]] : values[heads_[k]];
      return conditions_.sizes_at(values);
    }
    mend(random, values, *broken, largest);
  }
  return std::nullopt;
}

}  // namespace weft::equation
