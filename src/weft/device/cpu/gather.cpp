#include "weft/device/cpu/gather.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "weft/base/check.h"
#include "weft/device/cpu/lanes.h"
#include "weft/device/cpu/strided_copy.h"

namespace weft::device::cpu {
namespace {

// strided_copy() for any rank.
void copy_row(const Gather& gather, std::size_t loop, const std::byte* from, std::byte* to) {
  const auto rest = [&](const std::vector<std::int64_t>& all) { return std::span(all).subspan(loop); };
  if (gather.sizes.size() - loop <= kMostCopyRank)
    return strided_copy(rest(gather.sizes), from, rest(gather.from), to, rest(gather.to), gather.width);
  const auto width = static_cast<std::int64_t>(gather.width);
  for (std::int64_t i = 0; i < gather.sizes[loop]; ++i)
    copy_row(gather, loop + 1, from + i * gather.from[loop] * width, to + i * gather.to[loop] * width);
}

template <class Position>
void gather_at(const Gather& gather, const Position* positions, std::int64_t begin, std::int64_t end,
               const std::byte* table, std::byte* y) {
  const auto width = static_cast<std::int64_t>(gather.width);
  const auto bytes = static_cast<std::size_t>(gather.elements * width);
  for (std::int64_t i = begin; i < end; ++i) {
    std::byte* const to = y + i * gather.elements * width;
    const std::int64_t number = positions[i] - gather.first;
    if (number < 0 || number >= gather.rows) {
      std::memset(to, 0, bytes);
      continue;
    }
    std::int64_t start = gather.row.at(number);
    if (gather.joined)
      for (std::int64_t rest = i, k = static_cast<std::int64_t>(gather.positions.size()); k-- > 0;) {
        const Gather::Loop& loop = gather.positions[static_cast<std::size_t>(k)];
        start += rest % loop.size * loop.table;
        rest /= loop.size;
      }
    const std::byte* const from = table + start * width;
    if (gather.together)
      std::memcpy(to, from, bytes);
    else
      copy_row(gather, 0, from, to);
  }
}

template <class Position>
void scatter_at(const ScatterAdd& scatter, const Position* positions, std::int64_t begin, std::int64_t end,
                const float* x, float* y) {
  std::fill(y + begin * scatter.item, y + end * scatter.item, 0.0f);
  std::int64_t low = 0, high = scatter.rows;
  if (scatter.cut == ScatterAdd::kRows) low = begin, high = end;
  constexpr std::size_t kMost = 64;  // maximum rank of a value, and of positions
  std::array<std::int64_t, 2 *kMost> at = {}, last = {};
  const std::size_t depth = scatter.loops.size();
  WEFT_CHECK(depth <= at.size());
  std::int64_t in_positions = 0, in_x = 0, in_y = 0;
  for (std::size_t k = 0; k < depth; ++k) {
    const ScatterAdd::Loop& loop = scatter.loops[k];
    last[k] = loop.size;
    if (static_cast<std::int64_t>(k) == scatter.cut) {
      at[k] = begin, last[k] = end;
      in_positions += begin * loop.positions, in_x += begin * loop.x, in_y += begin * loop.y;
    }
    if (at[k] >= last[k]) return;
  }
  const std::array<std::int64_t, 2 * kMost> start = at;
  for (;;) {
    const std::int64_t number = positions[in_positions] - scatter.first;
    if (number >= low && number < high) {
      float* const to = y + in_y + scatter.row.at(number);
      if (scatter.run == 1)
        *to += x[in_x];
      else
        accumulate_lanes(x + in_x, to, scatter.run);
    }
    std::size_t k = depth;
    for (;; --k) {
      if (k == 0) return;
      const ScatterAdd::Loop& loop = scatter.loops[k - 1];
      in_positions += loop.positions, in_x += loop.x, in_y += loop.y;
      if (++at[k - 1] < last[k - 1]) break;
      const std::int64_t done = last[k - 1] - start[k - 1];
      in_positions -= done * loop.positions, in_x -= done * loop.x, in_y -= done * loop.y;
      at[k - 1] = start[k - 1];
    }
  }
}

}  // namespace

Gather::Gather(std::vector<Loop> of_positions, std::span<const Loop> inside, std::int64_t table_rows,
               RowParts row_parts)
    : positions(std::move(of_positions)), rows(table_rows), row(std::move(row_parts)), to(inside.size()) {
  joined = std::ranges::any_of(positions, [](const Loop& loop) { return loop.table != 0; });
  for (std::size_t i = inside.size(); i-- > 0;) {
    together &= inside[i].size == 1 || inside[i].table == elements;
    to[i] = elements;
    elements *= inside[i].size;
  }
  for (const Loop& loop : inside) {
    sizes.push_back(loop.size);
    from.push_back(loop.table);
  }
}

void gather(const Gather& gather, const std::int32_t* positions, std::int64_t begin, std::int64_t end,
            const std::byte* table, std::byte* y) {
  gather_at(gather, positions, begin, end, table, y);
}
void gather(const Gather& gather, const std::int64_t* positions, std::int64_t begin, std::int64_t end,
            const std::byte* table, std::byte* y) {
  gather_at(gather, positions, begin, end, table, y);
}

void scatter_add(const ScatterAdd& scatter, const std::int32_t* positions, std::int64_t begin,
                 std::int64_t end, const float* x, float* y) {
  scatter_at(scatter, positions, begin, end, x, y);
}
void scatter_add(const ScatterAdd& scatter, const std::int64_t* positions, std::int64_t begin,
                 std::int64_t end, const float* x, float* y) {
  scatter_at(scatter, positions, begin, end, x, y);
}

}  // namespace weft::device::cpu
