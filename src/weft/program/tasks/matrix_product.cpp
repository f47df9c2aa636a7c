#include "weft/program/tasks/matrix_product.h"

#include <algorithm>

namespace weft::program {
namespace {

using Loops = InlineVector<ProductLoop, 4>;

// Merges adjacent loops that are evenly spaced in every operand. Loops of one role step in the same
// operands and have stride 0 in the others, so all three can be checked.
Loops merged(Loops loops) {
  std::ranges::sort(loops, [](const ProductLoop& x, const ProductLoop& y) {
    return std::max({x.a, x.b, x.c}) > std::max({y.a, y.b, y.c});
  });
  Loops merged;
  for (const ProductLoop& loop : loops) {
    if (!merged.empty()) {
      ProductLoop& last = merged.back();
      if (last.a == loop.size * loop.a && last.b == loop.size * loop.b && last.c == loop.size * loop.c) {
        last = {last.size * loop.size, loop.a, loop.b, loop.c};
        continue;
      }
    }
    merged.push_back(loop);
  }
  return merged;
}

// Stores a `rows` x `columns` matrix, if one stride is 1 and BLAS can express the other.
bool store(Operand& operand, std::int64_t rows, std::int64_t row_step, std::int64_t columns,
           std::int64_t column_step) {
  if (column_step == 1 || columns == 1) {
    operand.transposed = false;
    operand.row_stride = rows == 1 ? columns : row_step;
    if (operand.row_stride >= columns) return true;
  }
  if (row_step == 1 || rows == 1) {
    operand.transposed = true;
    operand.row_stride = columns == 1 ? rows : column_step;
    return operand.row_stride >= rows;
  }
  return false;
}

std::int64_t points(const Loops& loops) {
  std::int64_t count = 1;
  for (const ProductLoop& loop : loops) count *= loop.size;
  return count;
}

std::optional<Band> band_of(const Region& region, Symbol m, Symbol n, Symbol k) {
  const auto side = [&](Symbol index) -> std::optional<Side> {
    if (index == m) return Side::m;
    if (index == n) return Side::n;
    if (index == k) return Side::k;
    return std::nullopt;
  };
  const auto later = side(region.later), earlier = side(region.earlier);
  if (!later || !earlier) return std::nullopt;
  return Band{*later, *earlier, region.offset};
}

}  // namespace

std::int64_t MatrixProduct::calls() const { return points(outer) * points(summed); }

double MatrixProduct::flops() const {
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
         static_cast<double>(calls());
}

double MatrixProduct::estimate() const {
  // Half speed at 16 rows, columns or summands; one microsecond per call. Rough, but the
  // alternatives that matter differ by large factors.
  constexpr double kRate = 60e9, kHalf = 16, kCall = 1e-6;
  const double slowdown = (1 + kHalf / static_cast<double>(m)) * (1 + kHalf / static_cast<double>(n)) *
                          (1 + kHalf / static_cast<double>(k));
  return flops() / kRate * slowdown + kCall * static_cast<double>(calls());
}

std::optional<MatrixProduct> as_matrix_product(const Place& a, const Place& b, const Place& c,
                                               const std::optional<Region>& masked) {
  Loops rows, columns, sums, outer;
  const auto sort_in = [&](const Axis& axis, bool summed) {
    if (axis.size == 1) return true;
    const bool in_a = a.find(axis.index) != nullptr, in_b = b.find(axis.index) != nullptr;
    const ProductLoop loop{axis.size, a.stride(axis.index), b.stride(axis.index), c.stride(axis.index),
                           axis.index};
    if (summed && !(in_a && in_b)) return false;  // a sum over one operand is not a product
    if (!in_a && !in_b) return false;
    (summed ? sums : in_a && in_b ? outer : in_a ? rows : columns).push_back(loop);
    return true;
  };
  for (const Axis& axis : c.axes)
    if (!sort_in(axis, false)) return std::nullopt;
  for (const Place* operand : {&a, &b})
    for (const Axis& axis : operand->axes) {
      if (c.find(axis.index) != nullptr || (operand == &b && a.find(axis.index) != nullptr)) continue;
      if (!sort_in(axis, true)) return std::nullopt;
    }
  rows = merged(rows);
  columns = merged(columns);
  sums = merged(sums);
  outer = merged(outer);
  for (Loops* loops : {&rows, &columns, &sums})
    if (loops->empty()) loops->push_back({});

  std::optional<MatrixProduct> best;
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < columns.size(); ++j)
      for (std::size_t l = 0; l < sums.size(); ++l) {
        MatrixProduct way;
        const ProductLoop &m = rows[i], &n = columns[j], &k = sums[l];
        way.m = m.size, way.n = n.size, way.k = k.size;
        way.a = {a.buffer, a.offset, false, 0, a.dtype};
        way.b = {b.buffer, b.offset, false, 0, b.dtype};
        way.c = {c.buffer, c.offset, false, 0, c.dtype};
        if (!store(way.c, m.size, m.c, n.size, n.c)) continue;
        // (a b)' = b' a': a column-major c is the transpose of a row-major one.
        const bool swapped = way.c.transposed;
        if (!store(way.a, m.size, m.a, k.size, k.a) || !store(way.b, k.size, k.b, n.size, n.b)) continue;
        for (const ProductLoop& loop : outer) way.outer.push_back(loop);
        for (std::size_t other = 0; other < rows.size(); ++other)
          if (other != i) way.outer.push_back(rows[other]);
        for (std::size_t other = 0; other < columns.size(); ++other)
          if (other != j) way.outer.push_back(columns[other]);
        for (std::size_t other = 0; other < sums.size(); ++other)
          if (other != l) way.summed.push_back(sums[other]);
        if (masked)
          way.nothing = band_of(*masked, swapped ? n.index : m.index, swapped ? m.index : n.index, k.index);
        if (swapped) {
          std::swap(way.m, way.n);
          std::swap(way.a, way.b);
          way.a.transposed = !way.a.transposed;
          way.b.transposed = !way.b.transposed;
          way.c.transposed = false;
          for (Loops* loops : {&way.outer, &way.summed})
            for (ProductLoop& loop : *loops) std::swap(loop.a, loop.b);
        }
        std::ranges::sort(way.outer, [](const ProductLoop& x, const ProductLoop& y) { return x.c > y.c; });
        if (!best || way.estimate() < best->estimate()) best = way;
      }
  return best;
}

}  // namespace weft::program
