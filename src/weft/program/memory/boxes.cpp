#include "weft/program/memory/boxes.h"

#include <algorithm>
#include <numeric>

namespace weft::memory {
namespace {

struct Event {
  std::int64_t step;
  bool birth;  // deaths sort first: a buffer that dies at a step is gone before a birth there
  std::uint32_t box;

  friend auto operator<=>(const Event&, const Event&) = default;
};

// Renumbers the lifetimes [first, past) of `boxes` by moments; returns the number of moments.
std::int32_t number_moments(std::vector<Event> events, std::span<Box> boxes) {
  std::ranges::sort(events);
  std::int32_t moment = -1;
  bool after_birth = false;
  for (const Event& event : events) {
    if (event.birth && !after_birth) ++moment;
    if (event.birth) boxes[event.box].first = moment;
    if (!event.birth) boxes[event.box].past = moment + 1;
    after_birth = event.birth;
  }
  return moment + 1;
}

Piece make_piece(std::int64_t base, std::span<const Box> boxes) {
  Piece piece{base, 0, {boxes.begin(), boxes.end()}};
  std::vector<Event> events;
  for (std::uint32_t i = 0; i < boxes.size(); ++i) {
    events.push_back({boxes[i].first, true, i});
    events.push_back({boxes[i].past, false, i});
  }
  piece.moments = number_moments(std::move(events), piece.boxes);
  return piece;
}

// Boxes [begin, end) of a list sorted by birth; the last death is at `past`.
struct Run {
  std::size_t begin, end;
  std::int32_t past;
  std::int64_t base;  // offset of the bottom
};

// Splits the boxes into runs without common moments.
std::vector<Run> split(std::span<const Box> boxes, const Run& whole) {
  std::vector<Run> runs;
  for (std::size_t i = whole.begin; i < whole.end; ++i) {
    if (runs.empty() || boxes[i].first >= runs.back().past) runs.push_back({i, i, 0, whole.base});
    runs.back().end = i + 1;
    runs.back().past = std::max(runs.back().past, boxes[i].past);
  }
  return runs;
}

}  // namespace

Pieces cut_into_pieces(std::span<const Buffer> buffers, std::int64_t alignment) {
  Pieces result;
  result.offsets.resize(buffers.size());
  std::vector<Box> boxes;
  std::vector<Event> events;
  std::int64_t unit = 0;
  for (std::uint32_t i = 0; i < buffers.size(); ++i) {
    const Buffer& buffer = buffers[i];
    if (!buffer.takes_place()) continue;
    const auto box = static_cast<std::uint32_t>(boxes.size());
    boxes.push_back({0, 0, buffer.padded_size(alignment), i});
    events.push_back({buffer.born, true, box});
    events.push_back({buffer.dies, false, box});
    unit = std::gcd(unit, boxes.back().size);
  }
  if (boxes.empty()) return result;
  result.unit = unit;
  for (Box& box : boxes) box.size /= unit;
  number_moments(std::move(events), boxes);

  // In this order every group is a run, and boxes alive throughout it come first.
  std::ranges::stable_sort(boxes, [](const Box& a, const Box& b) {
    return a.first != b.first ? a.first < b.first : a.past > b.past;
  });
  std::vector<Run> open = {{0, boxes.size(), 0, 0}};
  while (!open.empty()) {
    const Run whole = open.back();
    open.pop_back();
    for (Run run : split(boxes, whole)) {
      const std::size_t leader = run.begin;
      const std::int32_t first = boxes[leader].first;
      for (; run.begin < run.end; ++run.begin) {
        const Box& box = boxes[run.begin];
        if (box.first != first || box.past != run.past) break;
        result.offsets[box.buffer] = run.base;
        run.base += box.size;
      }
      if (run.begin == leader)
        result.pieces.push_back(make_piece(run.base, std::span(boxes).subspan(leader, run.end - leader)));
      else if (run.begin != run.end)
        open.push_back(run);
    }
  }
  return result;
}

std::int64_t highest_edge(const Piece& piece, std::span<const std::int64_t> offsets) {
  std::int64_t highest = 0;
  for (std::size_t i = 0; i < piece.boxes.size(); ++i)
    highest = std::max(highest, offsets[i] + piece.boxes[i].size);
  return highest;
}

}  // namespace weft::memory
