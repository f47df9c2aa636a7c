#include "weft/device/cpu/strided_copy.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "weft/base/check.h"

namespace weft::device::cpu {
namespace {

// Elements move as words of their size. memcpy avoids aliasing violations, since the memory may
// hold floats; compilers turn it into plain loads and stores.
template <class Word>
Word load(const std::byte* from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

template <class Word>
void move(const std::byte* from, std::byte* to) {
  std::memcpy(to, from, sizeof(Word));
}

struct Axis {
  std::int64_t size = 1, from = 0, to = 0;  // strides in bytes
};

// The box with the fewest axes: without those of size 1, ordered by the target's stride, smallest
// innermost, and with axes merged that are contiguous in both layouts.
struct Box {
  std::array<Axis, kMostCopyRank> axes;
  std::size_t rank = 0;

  Box(std::span<const std::int64_t> sizes, std::span<const std::int64_t> from,
      std::span<const std::int64_t> to, std::int64_t unit) {
    for (std::size_t i = 0; i < sizes.size(); ++i)
      if (sizes[i] != 1) axes[rank++] = Axis{sizes[i], from[i] * unit, to[i] * unit};
    // Insertion sort, since std::stable_sort allocates.
    for (std::size_t i = 1; i < rank; ++i)
      for (std::size_t k = i; k > 0 && std::abs(axes[k - 1].to) < std::abs(axes[k].to); --k)
        std::swap(axes[k - 1], axes[k]);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < rank; ++i) {
      Axis& outer = axes[kept == 0 ? 0 : kept - 1];
      const Axis& inner = axes[i];
      if (kept > 0 && outer.from == inner.from * inner.size && outer.to == inner.to * inner.size)
        outer = Axis{outer.size * inner.size, inner.from, inner.to};
      else
        axes[kept++] = inner;
    }
    rank = kept;
  }

  // If the source's unit stride is not innermost, moves its axis next to the innermost one, so that
  // the two form a matrix transpose.
  void pair_unit_steps(std::int64_t unit) {
    if (rank < 3 || axes[rank - 1].from == unit || axes[rank - 1].from == 0) return;
    for (std::size_t i = 0; i + 2 < rank; ++i)
      if (axes[i].from == unit) {
        std::rotate(axes.begin() + i, axes.begin() + i + 1, axes.begin() + rank - 1);
        return;
      }
  }
};

template <class Word>
constexpr std::int64_t kUnit = sizeof(Word);

template <class Word>
void fill_words(std::byte* to, std::int64_t n, Word word) {
  for (std::int64_t i = 0; i < n; ++i) std::memcpy(to + i * kUnit<Word>, &word, sizeof word);
}

template <class Word>
void copy_axis(const Axis& axis, const std::byte* from, std::byte* to) {
  if (axis.to == kUnit<Word>) {
    if (axis.from == 0) return fill_words(to, axis.size, load<Word>(from));
    if (axis.from == kUnit<Word> && axis.size >= 16) {
      std::memcpy(to, from, static_cast<std::size_t>(axis.size) * sizeof(Word));
      return;
    }
  }
  for (std::int64_t i = 0; i < axis.size; ++i) move<Word>(from + i * axis.from, to + i * axis.to);
}

// Transposes four columns of four words into four rows.
[[gnu::always_inline]] inline void transpose_4x4(const std::byte* from, std::int64_t from_column,
                                                 std::byte* to, std::int64_t to_row) {
  typedef std::uint32_t Four [[gnu::vector_size(16)]];
  Four column[4];
  for (std::int64_t c = 0; c < 4; ++c) std::memcpy(&column[c], from + c * from_column, sizeof(Four));
  const Four low01 = __builtin_shufflevector(column[0], column[1], 0, 4, 1, 5);
  const Four high01 = __builtin_shufflevector(column[0], column[1], 2, 6, 3, 7);
  const Four low23 = __builtin_shufflevector(column[2], column[3], 0, 4, 1, 5);
  const Four high23 = __builtin_shufflevector(column[2], column[3], 2, 6, 3, 7);
  const Four row[4] = {__builtin_shufflevector(low01, low23, 0, 1, 4, 5),
                       __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
                       __builtin_shufflevector(high01, high23, 0, 1, 4, 5),
                       __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
  for (std::int64_t r = 0; r < 4; ++r) std::memcpy(to + r * to_row, &row[r], sizeof(Four));
}

template <class Word>
void transpose_tile(std::int64_t rows, std::int64_t columns, const std::byte* from, std::int64_t from_column,
                    std::byte* to, std::int64_t to_row) {
  constexpr std::int64_t kStep = kUnit<Word>;
  const auto one = [&](std::int64_t r, std::int64_t c) {
    move<Word>(from + r * kStep + c * from_column, to + r * to_row + c * kStep);
  };
  std::int64_t r = 0;
  if constexpr (kStep == 4)
    for (; r + 4 <= rows; r += 4) {
      std::int64_t c = 0;
      for (; c + 4 <= columns; c += 4)
        transpose_4x4(from + r * kStep + c * from_column, from_column, to + r * to_row + c * kStep, to_row);
      for (; c < columns; ++c)
        for (std::int64_t i = r; i < r + 4; ++i) one(i, c);
    }
  for (; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) one(r, c);
}

// The source has unit stride along rows, the target along columns. A tile touches few enough cache
// lines on both sides to stay in L1 and uses all of each.
template <class Word>
void transpose(const Axis& rows, const Axis& columns, const std::byte* from, std::byte* to) {
  constexpr std::int64_t kTile = 32;
  for (std::int64_t r = 0; r < rows.size; r += kTile)
    for (std::int64_t c = 0; c < columns.size; c += kTile)
      transpose_tile<Word>(std::min(kTile, rows.size - r), std::min(kTile, columns.size - c),
                           from + r * kUnit<Word> + c * columns.from, columns.from,
                           to + r * rows.to + c * kUnit<Word>, rows.to);
}

template <class Word>
void copy_plane(const Axis& rows, const Axis& columns, const std::byte* from, std::byte* to) {
  if (rows.from == kUnit<Word> && columns.to == kUnit<Word> && columns.from != kUnit<Word> &&
      columns.from != 0)
    return transpose<Word>(rows, columns, from, to);
  for (std::int64_t r = 0; r < rows.size; ++r)
    copy_axis<Word>(columns, from + r * rows.from, to + r * rows.to);
}

template <class Word>
void copy_box(std::span<const Axis> axes, const std::byte* from, std::byte* to) {
  if (axes.empty())
    move<Word>(from, to);
  else if (axes.size() == 1)
    copy_axis<Word>(axes[0], from, to);
  else if (axes.size() == 2)
    copy_plane<Word>(axes[0], axes[1], from, to);
  else
    for (std::int64_t i = 0; i < axes[0].size; ++i)
      copy_box<Word>(axes.subspan(1), from + i * axes[0].from, to + i * axes[0].to);
}

}  // namespace

void strided_copy(std::span<const std::int64_t> sizes, const void* from,
                  std::span<const std::int64_t> from_strides, void* to,
                  std::span<const std::int64_t> to_strides, std::size_t element_bytes) {
  WEFT_CHECK(sizes.size() <= kMostCopyRank && from_strides.size() == sizes.size() &&
             to_strides.size() == sizes.size());
  if (std::ranges::find(sizes, 0) != sizes.end()) return;
  const auto unit = static_cast<std::int64_t>(element_bytes);
  Box box(sizes, from_strides, to_strides, unit);
  box.pair_unit_steps(unit);
  const std::span<const Axis> axes(box.axes.data(), box.rank);
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  switch (element_bytes) {
    case 1: return copy_box<std::uint8_t>(axes, source, target);
    case 2: return copy_box<std::uint16_t>(axes, source, target);
    case 4: return copy_box<std::uint32_t>(axes, source, target);
    case 8: return copy_box<std::uint64_t>(axes, source, target);
    default: WEFT_CHECK(false, "an element has 1, 2, 4 or 8 bytes");
  }
}

void fill(void* to, std::int64_t elements, const void* value, std::size_t element_bytes) {
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(value);
  switch (element_bytes) {
    case 1: return fill_words(target, elements, load<std::uint8_t>(source));
    case 2: return fill_words(target, elements, load<std::uint16_t>(source));
    case 4: return fill_words(target, elements, load<std::uint32_t>(source));
    case 8: return fill_words(target, elements, load<std::uint64_t>(source));
    default: WEFT_CHECK(false, "an element has 1, 2, 4 or 8 bytes");
  }
}

}  // namespace weft::device::cpu
