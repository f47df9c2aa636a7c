#include "weft/collectives/reshard/box.h"

namespace weft::reshard {
namespace {

// Appends the elements [begin, end) of the range spanned by the dims from `dim` on. `chosen` is the
// box so far.
void cut(const Box& box, std::size_t dim, Box& chosen, std::int64_t begin, std::int64_t end,
         std::vector<Box>& boxes) {
  if (begin >= end) return;
  std::int64_t row = 1;
  for (std::size_t inner = dim + 1; inner < box.size(); ++inner) row *= box[inner].size;
  const auto take_rows = [&](std::int64_t first, std::int64_t count) {
    Box taken = chosen;
    taken[dim] = {box[dim].begin + first, count};
    for (std::size_t inner = dim + 1; inner < box.size(); ++inner) taken[inner] = box[inner];
    boxes.push_back(std::move(taken));
  };
  const auto take_from_row = [&](std::int64_t at, std::int64_t from, std::int64_t to) {
    chosen[dim] = {box[dim].begin + at, 1};
    cut(box, dim + 1, chosen, from, to, boxes);
  };
  std::int64_t first = begin / row;
  const std::int64_t last = end / row;
  if (first == last) return take_from_row(first, begin % row, end % row);
  if (begin % row != 0) take_from_row(first++, begin % row, row);
  if (first < last) take_rows(first, last - first);
  if (end % row != 0) take_from_row(last, 0, end % row);
}

}  // namespace

std::int64_t elements_of(const Box& box) {
  std::int64_t elements = 1;
  for (const plan::Share& share : box) elements *= share.size;
  return elements;
}

std::vector<Box> boxes_of_range(const Box& box, std::int64_t begin, std::int64_t end) {
  std::vector<Box> boxes;
  Box chosen = box;
  if (box.empty()) {
    if (begin < end) boxes.push_back(box);
  } else {
    cut(box, 0, chosen, begin, end, boxes);
  }
  return boxes;
}

std::int64_t whole_rows(const Box& box, std::int64_t at, std::int64_t most) {
  std::int64_t row = 1;
  for (std::size_t dim = box.size(); dim-- > 0 && row * box[dim].size <= most;) row *= box[dim].size;
  return at - at % row;
}

}  // namespace weft::reshard
