#include "weft/device/cpu/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "weft/device/cpu/blas.h"
#include "weft/device/cpu/lanes.h"
#include "weft/program/items.h"

namespace weft::device::cpu {
namespace {

using program::Band;
using program::kQueryTile;
using program::Range;
using program::Side;

constexpr std::int64_t kKeyTile = 384;
constexpr float kNothing = -std::numeric_limits<float>::infinity();

// A tile of scores, and what its rows need.
struct Tile {
  std::int64_t head, query, queries;  // the first, and how many
  std::int64_t key = 0, keys = 0;

  // What a query sees of the tile's keys, counted from the tile's first.
  Range seen(const ops::Attending& of, std::int64_t row) const {
    return {std::clamp<std::int64_t>(of.first_key(query + row) - key, 0, keys),
            std::clamp<std::int64_t>(of.end_key(query + row) - key, 0, keys)};
  }
  // The part that lies above the diagonal, of a product whose rows and columns, or summands, are these.
  Band hidden(const ops::Attending& of, Side key_side, Side query_side) const {
    return {key_side, query_side, of.causal ? of.begin + query - key : keys};
  }
};

template <class Each>
void for_key_tiles(const ops::Attending& of, Tile& tile, Each each) {
  const std::int64_t end = of.end_key(tile.query + tile.queries - 1);
  for (std::int64_t key = of.first_key(tile.query); key < end; key += kKeyTile) {
    tile.key = key;
    tile.keys = std::min(kKeyTile, end - key);
    each();
  }
}

// scores = factor * q k^T, where they are seen; -inf where the mask says so.
void score(const Attention& how, const Tile& tile, const float* q, const float* k, const std::uint8_t* mask,
           float* scores) {
  const auto h = static_cast<std::size_t>(tile.head);
  const auto factor = static_cast<float>(how.of.scale / how.of.divisor);
  gemm(Transpose::no, Transpose::yes, tile.queries, tile.keys, how.inner, factor,
       q + how.q.heads[h] + tile.query * how.q.step, how.q.step, k + how.k.heads[h] + tile.key * how.k.step,
       how.k.step, 0, scores, kKeyTile, tile.hidden(how.of, Side::n, Side::m));
  if (mask == nullptr) return;
  for (std::int64_t row = 0; row < tile.queries; ++row) {
    const std::uint8_t* there =
        mask + how.mask.heads[h] + (tile.query + row) * how.mask.step + tile.key * how.mask_step;
    for (std::int64_t t = 0; t < tile.keys; ++t)
      if (there[t * how.mask_step] == 0) scores[row * kKeyTile + t] = kNothing;
  }
}

void clear_unseen(const Tile& tile, Range seen, float* row) {
  std::fill(row, row + seen.begin, 0.0f);
  std::fill(row + std::max(seen.begin, seen.end), row + tile.keys, 0.0f);
}

void scale_row(float factor, float* x, std::int64_t n) {
  const std::array<LaneOperand, 2> both = {{{x, false}, {&factor, true}}};
  run_lane(Lane::mul, n, both.data(), x);
}

}  // namespace

std::size_t attention_scratch_bytes() {
  return static_cast<std::size_t>(2 * kQueryTile * kKeyTile + 2 * kQueryTile) * sizeof(float);
}

void attend(const Attention& how, std::int64_t begin, std::int64_t end, const float* q, const float* k,
            const float* v, const std::uint8_t* mask, float* y, float* log_sum, void* scratch) {
  const std::int64_t tiles = (how.queries + kQueryTile - 1) / kQueryTile;
  float* const scores = static_cast<float*>(scratch);
  float* const largest = scores + kQueryTile * kKeyTile;
  float* const total = largest + kQueryTile;
  for (std::int64_t item = begin; item < end; ++item) {
    const std::int64_t query = item % tiles * kQueryTile;
    Tile tile{.head = item / tiles, .query = query, .queries = std::min(kQueryTile, how.queries - query)};
    const auto h = static_cast<std::size_t>(tile.head);
    float* const result = y + how.y.heads[h] + query * how.y.step;
    std::fill_n(largest, tile.queries, kNothing);
    std::fill_n(total, tile.queries, 0.0f);
    for (std::int64_t row = 0; row < tile.queries; ++row)
      std::fill_n(result + row * how.y.step, how.values, 0.0f);
    for_key_tiles(how.of, tile, [&] {
      score(how, tile, q, k, mask, scores);
      for (std::int64_t row = 0; row < tile.queries; ++row) {
        float* const line = scores + row * kKeyTile;
        const Range seen = tile.seen(how.of, row);
        clear_unseen(tile, seen, line);
        if (seen.empty()) continue;
        const std::int64_t n = seen.end - seen.begin;
        const float here = max_lanes(line + seen.begin, n), before = largest[row];
        const float now = here > before || std::isnan(here) ? here : before;
        if (now == kNothing) {
          std::fill(line + seen.begin, line + seen.end, 0.0f);
          continue;
        }
        if (now != before && before != kNothing) {
          const float less = std::exp(before - now);
          total[row] *= less;
          scale_row(less, result + row * how.y.step, how.values);
        }
        largest[row] = now;
        total[row] += exponential_row(line + seen.begin, now, line + seen.begin, n);
      }
      gemm(Transpose::no, Transpose::no, tile.queries, how.values, tile.keys, 1, scores, kKeyTile,
           v + how.v.heads[h] + tile.key * how.v.step, how.v.step, 1, result, how.y.step,
           tile.hidden(how.of, Side::k, Side::m));
    });
    float* const sums = log_sum + how.log_sum.heads[h] + query * how.log_sum.step;
    for (std::int64_t row = 0; row < tile.queries; ++row) {
      const bool saw = largest[row] != kNothing;
      if (saw) scale_row(1 / total[row], result + row * how.y.step, how.values);
      sums[row * how.log_sum.step] = saw ? largest[row] + std::log(total[row]) : kNothing;
    }
  }
}

void attend_back(const Attention& how, std::int64_t begin, std::int64_t end, const float* q, const float* k,
                 const float* v, const float* y, const float* log_sum, const float* dy,
                 const std::uint8_t* mask, const AttentionGradients& to, void* scratch) {
  float* const shares = static_cast<float*>(scratch);
  float* const slopes = shares + kQueryTile * kKeyTile;
  const auto factor = static_cast<float>(how.of.scale / how.of.divisor);
  for (std::int64_t head = begin * how.sharing; head < end * how.sharing; ++head) {
    const auto h = static_cast<std::size_t>(head);
    for (std::int64_t s = 0; s < how.queries; ++s)
      std::fill_n(to.dq + how.dq.heads[h] + s * how.dq.step, how.inner, 0.0f);
    for (std::int64_t t = 0; t < how.keys; ++t) {
      std::fill_n(to.dk + how.dk.heads[h] + t * how.dk.step, how.inner, 0.0f);
      std::fill_n(to.dv + how.dv.heads[h] + t * how.dv.step, how.values, 0.0f);
    }
  }
  for (std::int64_t head = begin * how.sharing; head < end * how.sharing; ++head) {
    const auto h = static_cast<std::size_t>(head);
    for (std::int64_t query = 0; query < how.queries; query += kQueryTile) {
      Tile tile{.head = head, .query = query, .queries = std::min(kQueryTile, how.queries - query)};
      const float* const q_rows = q + how.q.heads[h] + query * how.q.step;
      const float* const y_rows = y + how.y.heads[h] + query * how.y.step;
      const float* const dy_rows = dy + how.dy.heads[h] + query * how.dy.step;
      const float* const sums = log_sum + how.log_sum.heads[h] + query * how.log_sum.step;
      float* const along = slopes + kQueryTile * kKeyTile;  // of each row: the sum of p dp
      for (std::int64_t row = 0; row < tile.queries; ++row)
        along[row] = dot_lanes(y_rows + row * how.y.step, dy_rows + row * how.dy.step, how.values);
      for_key_tiles(how.of, tile, [&] {
        const float* const k_rows = k + how.k.heads[h] + tile.key * how.k.step;
        const float* const v_rows = v + how.v.heads[h] + tile.key * how.v.step;
        const std::int64_t m = tile.queries, n = tile.keys;
        score(how, tile, q, k, mask, shares);
        gemm(Transpose::no, Transpose::yes, m, n, how.values, 1, dy_rows, how.dy.step, v_rows, how.v.step, 0,
             slopes, kKeyTile, tile.hidden(how.of, Side::n, Side::m));
        for (std::int64_t row = 0; row < m; ++row) {
          float *const p = shares + row * kKeyTile, *const ds = slopes + row * kKeyTile;
          const float sum = sums[row * how.log_sum.step];
          const Range seen = sum == kNothing ? Range{} : tile.seen(how.of, row);
          clear_unseen(tile, seen, p);
          clear_unseen(tile, seen, ds);
          if (seen.empty()) continue;
          const std::int64_t first = seen.begin, count = seen.end - seen.begin;
          exponential_row(p + first, sum, p + first, count);
          softmax_slope_row(p + first, ds + first, along[row], factor, ds + first, count);
        }
        gemm(Transpose::yes, Transpose::no, n, how.values, m, 1, shares, kKeyTile, dy_rows, how.dy.step, 1,
             to.dv + how.dv.heads[h] + tile.key * how.dv.step, how.dv.step,
             tile.hidden(how.of, Side::m, Side::k));
        gemm(Transpose::no, Transpose::no, m, how.inner, n, 1, slopes, kKeyTile, k_rows, how.k.step, 1,
             to.dq + how.dq.heads[h] + query * how.dq.step, how.dq.step,
             tile.hidden(how.of, Side::k, Side::m));
        gemm(Transpose::yes, Transpose::no, n, how.inner, m, 1, slopes, kKeyTile, q_rows, how.q.step, 1,
             to.dk + how.dk.heads[h] + tile.key * how.dk.step, how.dk.step,
             tile.hidden(how.of, Side::m, Side::k));
      });
    }
  }
}

}  // namespace weft::device::cpu
