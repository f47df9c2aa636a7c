#include "weft/program/memory/frontier.h"

#include <algorithm>

namespace weft::memory {
namespace {

constexpr Height kNever = std::numeric_limits<Height>::max();
constexpr BoxIndex kNoBox = std::numeric_limits<BoxIndex>::max();

}  // namespace

Frontier::Frontier(const Piece& piece, std::span<const std::uint32_t> order, Height height)
    : height_(height), lowest_(order.size()), offsets_(order.size()) {
  for (const std::uint32_t position : order) boxes_.push_back(piece.boxes[position]);
  for (auto* per_moment : {&top_, &floor_, &left_, &blocked_, &ends_, &starts_, &fitting_, &stack_})
    per_moment->resize(piece.moments + 1);
  owner_.resize(piece.moments, kNoBox);
}

std::vector<Part> Frontier::split(std::span<const BoxIndex> boxes) const {
  std::vector<Moment> reach(top_.size(), 0);  // end of the longest box that starts here
  for (const BoxIndex b : boxes) reach[boxes_[b].first] = std::max(reach[boxes_[b].first], boxes_[b].past);
  std::vector<Part> parts;
  std::vector<std::uint32_t> part_at(top_.size());
  for (Moment m = 0; m < std::ssize(reach); ++m) {
    if (reach[m] != 0 && (parts.empty() || m >= parts.back().end)) parts.push_back({m, reach[m], {}});
    if (parts.empty()) continue;
    parts.back().end = std::max(parts.back().end, reach[m]);
    part_at[m] = static_cast<std::uint32_t>(parts.size() - 1);
  }
  for (const BoxIndex b : boxes) parts[part_at[boxes_[b].first]].boxes.push_back(b);
  return parts;
}

bool Frontier::still_possible(const Part& part) {
  return raise_floors(part) && stacks_fit(part) && !leaves_a_gap(part);
}

// A box is no lower than the highest floor below it, and a moment's floor is no lower than the
// lowest box over it. False if a floor rises too far.
bool Frontier::raise_floors(const Part& part) {
  for (bool changed = true; changed;) {
    changed = false;
    std::fill(stack_.begin() + part.begin, stack_.begin() + part.end, kNever);
    for (const BoxIndex b : part.boxes) {
      const Box& box = boxes_[b];
      lowest_[b] = *std::max_element(floor_.begin() + box.first, floor_.begin() + box.past);
      for (Moment m = box.first; m < box.past; ++m) stack_[m] = std::min(stack_[m], lowest_[b]);
    }
    for (Moment m = part.begin; m < part.end; ++m) {
      if (stack_[m] <= floor_[m]) continue;
      if (stack_[m] >= height_) return false;
      floor_[m] = stack_[m];
      changed = true;
    }
  }
  return true;
}

// Whether the boxes stay below the height if stacked at each moment in the order of their lowest
// offsets.
bool Frontier::stacks_fit(const Part& part) {
  rising_.assign(part.boxes.begin(), part.boxes.end());
  std::ranges::sort(rising_, {}, [&](BoxIndex b) { return lowest_[b]; });
  std::fill(stack_.begin() + part.begin, stack_.begin() + part.end, 0);
  for (const BoxIndex b : rising_)
    for (Moment m = boxes_[b].first; m < boxes_[b].past; ++m) {
      stack_[m] = std::max(stack_[m], lowest_[b]) + boxes_[b].size;
      if (stack_[m] > height_) return false;
    }
  return true;
}

// Whether a remaining box would fit below the floors. Then no packing from here on has that box as
// low as possible.
bool Frontier::leaves_a_gap(const Part& part) const {
  return std::ranges::any_of(part.boxes, [&](BoxIndex b) {
    const Box& box = boxes_[b];
    const Height bottom = *std::max_element(top_.begin() + box.first, top_.begin() + box.past);
    const Height ceiling = *std::min_element(floor_.begin() + box.first, floor_.begin() + box.past);
    return bottom + box.size <= ceiling;
  });
}

Question Frontier::choose_question(const Part& part) {
  survey(part);
  Question best;
  for (Moment begin = part.begin, end = begin; begin < part.end; begin = end) {
    const Height floor = floor_[begin];
    while (end < part.end && floor_[end] == floor) ++end;
    const bool valley =
        (begin == part.begin || floor_[begin - 1] > floor) && (end == part.end || floor_[end] > floor);
    if (!valley) continue;
    // A box over m that cannot rest on this floor rests on a higher one, or on a box beside m.
    for (Moment m = end - 1; m > begin; --m) starts_[m - 1] = std::min(starts_[m - 1], starts_[m]);
    Height left_of = kNever;
    for (Moment m = begin; m < end; ++m) {
      if (m > begin) left_of = std::min(left_of, ends_[m]);
      const Height right_of = m + 1 < end ? starts_[m + 1] : kNever;
      Question question{.moment = m, .floor = floor, .answers = fitting_[m]};
      question.slack = height_ - floor - left_[m];
      question.next_floor = std::min({blocked_[m], left_of, right_of});
      question.may_stay_bare = question.next_floor != kNever && question.next_floor - floor <= question.slack;
      if (question.may_stay_bare) ++question.answers;
      if (question.better_than(best)) best = question;
    }
  }
  return best;
}

void Frontier::survey(const Part& part) {
  for (Moment m = part.begin; m <= part.end; ++m) {
    left_[m] = 0;
    fitting_[m] = 0;
    blocked_[m] = ends_[m] = starts_[m] = kNever;
  }
  for (const BoxIndex b : part.boxes) {
    const Box& box = boxes_[b];
    const Height lowest = lowest_[b];
    ends_[box.past] = std::min(ends_[box.past], lowest + box.size);
    starts_[box.first] = std::min(starts_[box.first], lowest + box.size);
    for (Moment m = box.first; m < box.past; ++m) {
      left_[m] += box.size;
      if (floor_[m] == lowest)
        ++fitting_[m];
      else
        blocked_[m] = std::min(blocked_[m], lowest);
    }
  }
}

std::vector<BoxIndex> Frontier::candidates(const Part& part, const Question& question) const {
  std::vector<BoxIndex> result;
  for (const BoxIndex b : part.boxes) {
    const Box& box = boxes_[b];
    if (box.first > question.moment || box.past <= question.moment || lowest_[b] != question.floor) continue;
    // Of two boxes with equal lifetimes, one directly on the other, the preferred one goes below.
    const BoxIndex below = owner_[box.first];
    if (below != kNoBox && below > b && same_life(below, b) && top_[box.first] == question.floor) continue;
    const bool twin = std::ranges::any_of(
        result, [&](BoxIndex other) { return same_life(other, b) && boxes_[other].size == box.size; });
    if (!twin) result.push_back(b);
  }
  return result;
}

bool Frontier::same_life(BoxIndex a, BoxIndex b) const {
  return boxes_[a].first == boxes_[b].first && boxes_[a].past == boxes_[b].past;
}

void Frontier::place(BoxIndex b, Height offset) {
  const Box& box = boxes_[b];
  for (Moment m = box.first; m < box.past; ++m) {
    top_[m] = floor_[m] = offset + box.size;
    owner_[m] = b;
  }
  offsets_[b] = offset;
}

Frontier::Memory Frontier::remember(const Part& part) const {
  return {{top_.begin() + part.begin, top_.begin() + part.end},
          {floor_.begin() + part.begin, floor_.begin() + part.end},
          {owner_.begin() + part.begin, owner_.begin() + part.end}};
}

void Frontier::return_to(const Memory& memory, const Part& part) {
  std::ranges::copy(memory.tops, top_.begin() + part.begin);
  std::ranges::copy(memory.floors, floor_.begin() + part.begin);
  std::ranges::copy(memory.owners, owner_.begin() + part.begin);
}

}  // namespace weft::memory
