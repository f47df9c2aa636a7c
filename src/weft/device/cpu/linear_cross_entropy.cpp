#include "weft/device/cpu/linear_cross_entropy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "weft/device/cpu/blas.h"
#include "weft/device/cpu/lanes.h"

namespace weft::device::cpu {
namespace {

using program::LossTiles;
using program::Range;

// A range of classes of the tile, stored as contiguous rows of these classes.
float* stretch_of(const LinearLoss& of, const Range& classes) {
  return of.room + of.tiles.tile * classes.begin;
}

void find_logits(const LinearLoss& of, const LossTiles::Item& item) {
  const LossTiles& t = of.tiles;
  const Range classes = item.share;
  const std::int64_t n = classes.end - classes.begin;
  float* const tile = stretch_of(of, classes);
  const std::int64_t rows = item.rows.end - item.rows.begin;
  if (of.bias != nullptr)
    for (std::int64_t row = 0; row < rows; ++row) std::copy_n(of.bias + classes.begin, n, tile + row * n);
  gemm(Transpose::no, t.by_class ? Transpose::yes : Transpose::no, rows, n, t.width, 1,
       of.hidden + item.rows.begin * t.width, t.width, of.words + classes.begin * (t.by_class ? t.width : 1),
       t.by_class ? t.width : t.classes, of.bias != nullptr ? 1 : 0, tile, n);
}

// Replaces a row of logits by its gradient and stores its loss.
void find_row_slopes(const LinearLoss& of, std::int64_t row, std::int64_t in_tile, std::int64_t label) {
  const LossTiles& t = of.tiles;
  const auto each_stretch = [&](auto visit) {
    for (std::int64_t part = 0; part < t.parts; ++part)
      if (const Range classes = t.stretch(part); !classes.empty()) {
        const std::int64_t n = classes.end - classes.begin;
        visit(stretch_of(of, classes) + in_tile * n, n, label - classes.begin);
      }
  };
  float& loss = of.room[t.loss_at(row)];
  loss = 0;
  if (label < 0 || label >= t.classes) {
    each_stretch([](float* x, std::int64_t n, std::int64_t) { std::fill_n(x, n, 0.0f); });
    return;
  }
  float largest = -std::numeric_limits<float>::infinity(), wanted = 0;
  each_stretch([&](const float* x, std::int64_t n, std::int64_t own) {
    const float here = max_lanes(x, n);
    if (here > largest || std::isnan(here)) largest = here;
    if (own >= 0 && own < n) wanted += of.weights.sure * x[own];
    if (of.weights.each > 0) wanted += of.weights.each * sum_lanes(x, n);
  });
  double total = 0;
  each_stretch([&](float* x, std::int64_t n, std::int64_t) {
    total += static_cast<double>(exponential_row(x, largest, x, n));
  });
  loss = largest + static_cast<float>(std::log(total)) - wanted;
  const auto share = static_cast<float>(1 / total);
  const float each = -of.weights.each;
  each_stretch([&](float* x, std::int64_t n, std::int64_t own) {
    const std::array<LaneOperand, 2> shared = {{{x, false}, {&share, true}}},
                                     less = {{{x, false}, {&each, true}}};
    run_lane(Lane::mul, n, shared.data(), x);
    if (each < 0) run_lane(Lane::add, n, less.data(), x);
    if (own >= 0 && own < n) x[own] -= of.weights.sure;
  });
}

// dhidden = slopes words, range by range.
void find_hidden_slopes(const LinearLoss& of, const LossTiles::Item& item) {
  const LossTiles& t = of.tiles;
  const std::int64_t m = item.share.end - item.share.begin, before = item.share.begin - item.rows.begin;
  for (std::int64_t part = 0; part < t.parts; ++part) {
    const Range classes = t.stretch(part);
    const std::int64_t n = classes.end - classes.begin;
    gemm(Transpose::no, t.by_class ? Transpose::no : Transpose::yes, m, t.width, n, 1,
         stretch_of(of, classes) + before * n, n, of.words + classes.begin * (t.by_class ? t.width : 1),
         t.by_class ? t.width : t.classes, part == 0 ? 0 : 1, of.dhidden + item.share.begin * t.width,
         t.width);
  }
}

// dbias += the slopes of all rows, for a range of classes.
void add_bias_slopes(const LinearLoss& of, const Range& rows, const Range& classes) {
  float* const sums = of.dbias + classes.begin;
  const std::int64_t n = classes.end - classes.begin;
  if (rows.begin == 0) std::fill_n(sums, n, 0.0f);
  for (std::int64_t row = 0; row < rows.end - rows.begin; ++row) {
    const std::array<LaneOperand, 2> both = {{{sums, false}, {stretch_of(of, classes) + row * n, false}}};
    run_lane(Lane::add, n, both.data(), sums);
  }
}

// dwords += slopes^T hidden: for a range of classes, or for a range of hidden features and all
// classes.
void add_word_slopes(const LinearLoss& of, const LossTiles::Item& item) {
  const LossTiles& t = of.tiles;
  const float* const hidden = of.hidden + item.rows.begin * t.width;
  const float before = item.rows.begin == 0 ? 0 : 1;
  const std::int64_t m = item.share.end - item.share.begin, k = item.rows.end - item.rows.begin;
  if (t.by_class) {
    if (of.dbias != nullptr) add_bias_slopes(of, item.rows, item.share);
    gemm(Transpose::yes, Transpose::no, m, t.width, k, 1, stretch_of(of, item.share), m, hidden, t.width,
         before, of.dwords + item.share.begin * t.width, t.width);
    return;
  }
  for (std::int64_t part = 0; part < t.parts; ++part) {
    const Range classes = t.stretch(part);
    const std::int64_t n = classes.end - classes.begin;
    if (of.dbias != nullptr && item.share.begin == 0) add_bias_slopes(of, item.rows, classes);
    gemm(Transpose::yes, Transpose::no, m, n, k, 1, hidden + item.share.begin, t.width,
         stretch_of(of, classes), n, before, of.dwords + item.share.begin * t.classes + classes.begin,
         t.classes);
  }
}

void add_losses(const LinearLoss& of) {
  const LossTiles& t = of.tiles;
  *of.loss = sum_lanes(of.room + t.loss_at(0), t.rows);
  if (t.rows == 0 && of.dwords != nullptr) std::fill_n(of.dwords, t.classes * t.width, 0.0f);
  if (t.rows == 0 && of.dbias != nullptr) std::fill_n(of.dbias, t.classes, 0.0f);
}

}  // namespace

template <class Label>
void linear_cross_entropy(const LinearLoss& of, std::int64_t begin, std::int64_t end, const Label* labels) {
  for (std::int64_t i = begin; i < end; ++i) {
    const LossTiles::Item item = of.tiles.item(i);
    if (item.pass == LossTiles::Pass::sum)
      add_losses(of);
    else if (item.share.empty())
      continue;
    else if (item.pass == LossTiles::Pass::logits)
      find_logits(of, item);
    else if (item.pass == LossTiles::Pass::hidden)
      find_hidden_slopes(of, item);
    else if (item.pass == LossTiles::Pass::words)
      add_word_slopes(of, item);
    else
      for (std::int64_t row = item.share.begin; row < item.share.end; ++row)
        find_row_slopes(of, row, row - item.rows.begin, labels[row]);
  }
}

template void linear_cross_entropy(const LinearLoss&, std::int64_t, std::int64_t, const std::int32_t*);
template void linear_cross_entropy(const LinearLoss&, std::int64_t, std::int64_t, const std::int64_t*);

}  // namespace weft::device::cpu
