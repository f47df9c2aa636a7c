#include "weft/program/memory/skyline.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <utility>

namespace weft::memory {
namespace {

using Height = std::int64_t;
using Moment = std::int32_t;

constexpr Height kWall = std::numeric_limits<Height>::max();

// Heights over the moments, as maximal runs of equal height.
class Skyline {
 public:
  struct Valley {
    Moment begin, end;
    Height floor, lower_wall;  // lower_wall is kWall if the floor spans all moments
  };

  explicit Skyline(Moment moments) : moments_(moments) { open(0, 0); }

  Valley lowest_valley() {
    while (true) {
      const auto [height, begin] = lowest_.top();
      const auto run = runs_.find(begin);
      if (run == runs_.end() || run->second != height) {
        lowest_.pop();  // outdated: merged into another run, or raised
        continue;
      }
      const auto next = std::next(run);
      const Height left = run == runs_.begin() ? kWall : std::prev(run)->second;
      const Height right = next == runs_.end() ? kWall : next->second;
      return {begin, next == runs_.end() ? moments_ : next->first, height, std::min(left, right)};
    }
  }

  // Raises [begin, end), which is within one run, to `height`.
  void raise(Moment begin, Moment end, Height height) {
    auto run = std::prev(runs_.upper_bound(begin));
    const Height below = run->second;
    const Moment run_end = std::next(run) == runs_.end() ? moments_ : std::next(run)->first;
    if (end < run_end) open(end, below);
    if (begin > run->first)
      open(begin, height);
    else if (run != runs_.begin() && std::prev(run)->second == height)
      runs_.erase(run);
    else
      open(begin, height);
    if (const auto after = runs_.find(end); after != runs_.end() && after->second == height)
      runs_.erase(after);
  }

 private:
  void open(Moment begin, Height height) {
    runs_.insert_or_assign(begin, height);
    lowest_.emplace(height, begin);
  }

  const Moment moments_;
  std::map<Moment, Height> runs_;  // key: begin; each run ends at the next key
  std::priority_queue<std::pair<Height, Moment>, std::vector<std::pair<Height, Moment>>, std::greater<>>
      lowest_;
};

}  // namespace

std::vector<std::int64_t> fill_valleys(const Piece& piece, WaitingBoxes& waiting,
                                       std::span<const std::uint32_t> order) {
  waiting.reset(order);
  std::vector<std::int64_t> offsets(piece.boxes.size());
  Skyline skyline(piece.moments);
  for (std::size_t left = piece.boxes.size(); left > 0;) {
    const Skyline::Valley valley = skyline.lowest_valley();
    const std::uint32_t position = waiting.find_within(valley.begin, valley.end);
    if (position == WaitingBoxes::kNone) {
      skyline.raise(valley.begin, valley.end, valley.lower_wall);
      continue;
    }
    const Box& box = piece.boxes[position];
    waiting.remove(position);
    offsets[position] = valley.floor;
    skyline.raise(box.first, box.past, valley.floor + box.size);
    --left;
  }
  return offsets;
}

}  // namespace weft::memory
