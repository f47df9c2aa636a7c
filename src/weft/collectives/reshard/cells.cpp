#include "weft/collectives/reshard/cells.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft::reshard {
namespace {

// Limit on cells plus the devices that hold or need each: some hundred megabytes per reshard.
constexpr std::int64_t kMostEntries = std::int64_t{1} << 22;
constexpr std::int64_t kMostTensorBytes = std::int64_t{1} << 60;

Status check_boxes(const Reshard& reshard, const std::vector<Holding>& holdings) {
  for (const Holding& holding : holdings) {
    if (holding.device < 0 || holding.device >= static_cast<std::int64_t>(reshard.hosts.size()))
      return user_error(
          fmt::format("a device has no host: device {} of {}", holding.device, reshard.hosts.size()));
    if (holding.box.size() != reshard.sizes.size())
      return user_error(fmt::format("expected one share per dim, found {} shares for {} dims",
                                    holding.box.size(), reshard.sizes.size()));
    for (std::size_t dim = 0; dim < holding.box.size(); ++dim) {
      const plan::Share& share = holding.box[dim];
      if (share.begin < 0 || share.size < 0 || share.begin > reshard.sizes[dim] - share.size)
        return user_error(
            fmt::format("a box is outside the tensor: dim {} of device {}, from {} for {} of {}", dim,
                        holding.device, share.begin, share.size, reshard.sizes[dim]));
    }
  }
  return {};
}

Status check_reshard(const Reshard& reshard) {
  if (reshard.element_bytes < 1)
    return user_error(
        fmt::format("expected an element of at least one byte, found {}", reshard.element_bytes));
  std::int64_t bytes = reshard.element_bytes;
  for (const std::int64_t size : reshard.sizes) {
    if (size < 0) return user_error(fmt::format("expected a size of at least 0, found {}", size));
    if (size > 0 && bytes > kMostTensorBytes / size)
      return user_error(fmt::format("the tensor is too large: expected at most {} bytes", kMostTensorBytes));
    bytes *= std::max<std::int64_t>(size, 1);
  }
  for (const std::int32_t host : reshard.hosts)
    if (host < 0) return user_error(fmt::format("expected a host number of at least 0, found {}", host));
  WEFT_TRY_STATUS(check_boxes(reshard, reshard.sources));
  return check_boxes(reshard, reshard.destinations);
}

// The grid made of all box boundaries along each dim; each of its fields is a cell.
class Grid {
 public:
  explicit Grid(const Reshard& reshard) : marks_(reshard.sizes.size()) {
    for (const auto* holdings : {&reshard.sources, &reshard.destinations})
      for (const Holding& holding : *holdings) {
        if (elements_of(holding.box) == 0) continue;
        for (std::size_t dim = 0; dim < marks_.size(); ++dim)
          for (const std::int64_t mark : {holding.box[dim].begin, holding.box[dim].end()})
            marks_[dim].push_back(mark);
      }
    for (std::vector<std::int64_t>& marks : marks_) {
      std::ranges::sort(marks);
      marks.erase(std::unique(marks.begin(), marks.end()), marks.end());
    }
  }

  // kMostEntries + 1 if there are more.
  std::int64_t count() const {
    std::int64_t count = 1;
    for (const std::vector<std::int64_t>& marks : marks_) {
      if (marks.empty()) return 0;
      count = std::min(count * (static_cast<std::int64_t>(marks.size()) - 1), kMostEntries + 1);
    }
    return count;
  }

  Box box(std::int64_t cell) const {
    Box box(marks_.size());
    for (std::size_t dim = marks_.size(); dim-- > 0;) {
      const auto along = static_cast<std::int64_t>(marks_[dim].size()) - 1;
      const std::int64_t begin = marks_[dim][cell % along];
      box[dim] = {begin, marks_[dim][cell % along + 1] - begin};
      cell /= along;
    }
    return box;
  }

  // The numbers of the cells in a non-empty box.
  std::vector<std::int64_t> inside(const Box& box) const {
    std::vector<std::int64_t> cells = {0};
    for (std::size_t dim = 0; dim < marks_.size(); ++dim) {
      const std::vector<std::int64_t>& marks = marks_[dim];
      const auto first = std::ranges::lower_bound(marks, box[dim].begin) - marks.begin();
      const auto last = std::ranges::lower_bound(marks, box[dim].end()) - marks.begin();
      std::vector<std::int64_t> next;
      for (const std::int64_t cell : cells)
        for (auto at = first; at < last; ++at)
          next.push_back(cell * (static_cast<std::int64_t>(marks.size()) - 1) + at);
      cells = std::move(next);
    }
    return cells;
  }

  std::int64_t count_inside(const Box& box) const {
    std::int64_t count = 1;
    for (std::size_t dim = 0; dim < marks_.size(); ++dim)
      count *= std::ranges::lower_bound(marks_[dim], box[dim].end()) -
               std::ranges::lower_bound(marks_[dim], box[dim].begin);
    return count;
  }

 private:
  std::vector<std::vector<std::int64_t>> marks_;
};

}  // namespace

std::span<const std::int32_t> on_host(const std::vector<std::int32_t>& devices, std::int32_t host,
                                      std::span<const std::int32_t> hosts) {
  const auto host_of = [&](std::int32_t device) { return hosts[device]; };
  return {std::ranges::lower_bound(devices, host, {}, host_of),
          std::ranges::upper_bound(devices, host, {}, host_of)};
}

Result<std::vector<Cell>> cells_of(const Reshard& reshard) {
  WEFT_TRY_STATUS(check_reshard(reshard));
  const Grid grid(reshard);
  // A box has at most the cells of the grid, and grid.count() is bounded, so the products cannot
  // overflow.
  std::int64_t entries = grid.count();
  for (const auto* holdings : {&reshard.sources, &reshard.destinations})
    for (const Holding& holding : *holdings)
      if (entries <= kMostEntries && elements_of(holding.box) > 0) entries += grid.count_inside(holding.box);
  if (entries > kMostEntries)
    return user_error(
        fmt::format("the layouts intersect in too many pieces: expected at most {} pieces times their "
                    "devices, found more",
                    kMostEntries));

  std::vector<Cell> cells(grid.count());
  for (std::size_t i = 0; i < cells.size(); ++i) cells[i].box = grid.box(static_cast<std::int64_t>(i));
  const auto mark = [&](const std::vector<Holding>& holdings, std::vector<std::int32_t> Cell::*devices) {
    for (const Holding& holding : holdings)
      if (elements_of(holding.box) > 0)
        for (const std::int64_t cell : grid.inside(holding.box))
          (cells[cell].*devices).push_back(holding.device);
    for (Cell& cell : cells) {
      std::vector<std::int32_t>& all = cell.*devices;
      std::ranges::sort(all, {},
                        [&](std::int32_t device) { return std::pair(reshard.hosts[device], device); });
      all.erase(std::unique(all.begin(), all.end()), all.end());
    }
  };
  mark(reshard.sources, &Cell::holders);
  mark(reshard.destinations, &Cell::needers);
  std::erase_if(cells, [](const Cell& cell) { return cell.needers.empty(); });
  for (const Cell& cell : cells)
    if (cell.holders.empty()) {
      std::vector<std::int64_t> at;
      for (const plan::Share& share : cell.box) at.push_back(share.begin);
      return user_error(fmt::format("device {} needs an element that no source holds: [{}]",
                                    cell.needers.front(), fmt::join(at, ", ")));
    }
  return cells;
}

}  // namespace weft::reshard
