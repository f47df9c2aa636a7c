#include "weft/device/cpu/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <utility>

#include "weft/device/cpu/bf16_gemm.h"
#include "weft/device/cpu/blas.h"
#include "weft/device/cpu/lanes.h"
#include "weft/device/cpu/narrow.h"
#include "weft/program/tasks/items.h"

namespace weft::device::cpu {
namespace {

using program::Band;
using program::kQueryTile;
using program::Range;
using program::Side;

constexpr std::int64_t kKeyTile = 384;
constexpr float kNothing = -std::numeric_limits<float>::infinity();

// A tile of scores: its queries and keys.
struct Tile {
  std::int64_t head, query, queries;  // first query and number of queries
  std::int64_t key = 0, keys = 0;

  // The keys that a query attends to, relative to the tile's first key.
  Range seen(const ops::AttentionGeometry& of, std::int64_t row) const {
    return {std::clamp<std::int64_t>(of.first_key(query + row) - key, 0, keys),
            std::clamp<std::int64_t>(of.end_key(query + row) - key, 0, keys)};
  }
  // The band above the diagonal, in a product where keys and queries run along these sides.
  Band hidden(const ops::AttentionGeometry& of, Side key_side, Side query_side) const {
    return {key_side, query_side, of.causal ? of.begin + query - key : keys};
  }
};

template <class Each>
void for_key_tiles(const ops::AttentionGeometry& of, Tile& tile, Each each) {
  const std::int64_t end = of.end_key(tile.query + tile.queries - 1);
  for (std::int64_t key = of.first_key(tile.query); key < end; key += kKeyTile) {
    tile.key = key;
    tile.keys = std::min(kKeyTile, end - key);
    each();
  }
}

// f32 rows, `step` apart.
template <class Float>
struct FloatRows {
  Float* first;
  std::int64_t step;

  Float* operator[](std::int64_t row) const { return first + row * step; }
};
using Rows = FloatRows<const float>;
using OwnRows = FloatRows<float>;

// The rows in place if they are f32, else widened into `room`.
Rows wide_rows(const AttentionInput& x, std::int64_t at, std::int64_t step, std::int64_t rows,
               std::int64_t width, float* room) {
  const std::byte* const first = x.data + at * plan::size_in_bytes(x.dtype);
  if (!is_narrow(x.dtype)) return {reinterpret_cast<const float*>(first), step};
  for (std::int64_t row = 0; row < rows; ++row)
    widen(x.dtype, first + row * step * plan::size_in_bytes(x.dtype), room + row * width, width);
  return {room, width};
}

// An operand of a product: f32, or bf16 where the processor multiplies it natively.
struct Factor {
  Factor(Rows rows) : data(rows.first), step(rows.step) {}
  Factor(Bf16Products by, const Bf16* first, std::int64_t apart) : way(by), data(first), step(apart) {}

  bool is_bf16() const { return way != Bf16Products::widened; }

  Bf16Products way = Bf16Products::widened;
  const void* data;
  std::int64_t step;
};

// The rows in place if the product reads bf16, else as f32.
Factor factor_rows(Bf16Products way, const AttentionInput& x, std::int64_t at, std::int64_t step,
                   std::int64_t rows, std::int64_t width, float* room) {
  if (way == Bf16Products::widened) return wide_rows(x, at, step, rows, width, room);
  return {way, reinterpret_cast<const Bf16*>(x.data) + at, step};
}

// C = scale op(A) op(B) + beta C. REQUIRES: A and B have one type; scale is 1 if that is bf16.
void multiply_factors(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, float scale,
                      Factor A, Factor B, float beta, OwnRows C, const Band& nothing) {
  if (A.is_bf16())
    bf16_gemm(A.way, a, b, m, n, k, static_cast<const Bf16*>(A.data), A.step,
              static_cast<const Bf16*>(B.data), B.step, beta, C.first, C.step, &nothing);
  else
    gemm(a, b, m, n, k, scale, static_cast<const float*>(A.data), A.step, static_cast<const float*>(B.data),
         B.step, beta, C.first, C.step, nothing);
}

// The weights of a tile. For bf16 products they are rounded in place: a row keeps its start and
// takes half the space.
Factor weights_of(Bf16Products way, float* tile, std::int64_t rows, std::int64_t columns) {
  if (way == Bf16Products::widened) return Rows{tile, kKeyTile};
  for (std::int64_t row = 0; row < rows; ++row)
    narrow(plan::DType::bf16, tile + row * kKeyTile, reinterpret_cast<std::byte*>(tile + row * kKeyTile),
           columns);
  return {way, reinterpret_cast<const Bf16*>(tile), 2 * kKeyTile};
}

// Uses bf16 products only if all operands are bf16.
Bf16Products products_of(const Attention& how, std::initializer_list<AttentionInput> operands) {
  const bool bf16 =
      std::ranges::all_of(operands, [](const AttentionInput& x) { return x.dtype == plan::DType::bf16; });
  return bf16 ? how.products : Bf16Products::widened;
}

// Accumulated rows: in their destination if that is f32, else in `room` until finish().
class SummedRows {
 public:
  SummedRows(const AttentionOutput& to, std::int64_t at, std::int64_t step, std::int64_t rows,
             std::int64_t width, float* room)
      : dtype_(to.dtype),
        to_(to.data + at * plan::size_in_bytes(to.dtype)),
        step_(step),
        rows_(rows),
        width_(width) {
    sums = is_narrow(dtype_) ? OwnRows{room, width} : OwnRows{reinterpret_cast<float*>(to_), step};
  }

  void clear() const {
    for (std::int64_t row = 0; row < rows_; ++row) std::fill_n(sums[row], width_, 0.0f);
  }

  void finish() const {
    if (!is_narrow(dtype_)) return;
    for (std::int64_t row = 0; row < rows_; ++row)
      narrow(dtype_, sums[row], to_ + row * step_ * plan::size_in_bytes(dtype_), width_);
  }

  OwnRows sums;

 private:
  plan::DType dtype_;
  std::byte* to_;
  std::int64_t step_, rows_, width_;
};

// Per-worker scratch for a tile. f32 operands need only the first three arrays.
struct Room {
  Room(const Attention& how, void* scratch) {
    const auto take = [&](std::int64_t count) {
      const std::int64_t first = std::exchange(floats, floats + count);
      return scratch == nullptr ? nullptr : static_cast<float*>(scratch) + first;
    };
    scores = take(kQueryTile * kKeyTile);
    slopes = take(kQueryTile * kKeyTile);
    by_query = take(2 * kQueryTile);
    if (!how.narrow) return;
    q = take(kQueryTile * how.inner);
    y = take(kQueryTile * how.values);
    dy = take(kQueryTile * how.values);
    k = take(kKeyTile * how.inner);
    v = take(kKeyTile * how.values);
    dq = take(kQueryTile * how.inner);
    dk = take(how.keys * how.inner);
    dv = take(how.keys * how.values);
  }

  float *scores = nullptr, *slopes = nullptr, *by_query = nullptr;
  float *q = nullptr, *y = nullptr, *dy = nullptr, *k = nullptr, *v = nullptr;
  float *dq = nullptr, *dk = nullptr, *dv = nullptr;
  std::int64_t floats = 0;
};

void scale_row(float factor, float* x, std::int64_t n) {
  const std::array<LaneOperand, 2> both = {{{x, false}, {&factor, true}}};
  run_lane(Lane::mul, n, both.data(), x);
}

// scores = factor * q k^T where a query attends to a key; -inf where the mask is 0.
void score(const Attention& how, const Tile& tile, Factor q, Factor k, const std::uint8_t* mask,
           float* scores) {
  const auto h = static_cast<std::size_t>(tile.head);
  const auto factor = static_cast<float>(how.of.scale / how.of.divisor);
  const bool later = q.is_bf16();
  multiply_factors(Transpose::no, Transpose::yes, tile.queries, tile.keys, how.inner, later ? 1 : factor, q,
                   k, 0, OwnRows{scores, kKeyTile}, tile.hidden(how.of, Side::n, Side::m));
  for (std::int64_t row = 0; later && row < tile.queries; ++row) {
    const Range seen = tile.seen(how.of, row);
    if (!seen.empty()) scale_row(factor, scores + row * kKeyTile + seen.begin, seen.end - seen.begin);
  }
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

}  // namespace

std::size_t attention_scratch_bytes(const Attention& how) {
  return static_cast<std::size_t>(Room(how, nullptr).floats) * sizeof(float);
}

void attend(const Attention& how, std::int64_t begin, std::int64_t end, AttentionInput q, AttentionInput k,
            AttentionInput v, const std::uint8_t* mask, AttentionOutput y, float* log_sum, void* scratch) {
  const std::int64_t tiles = (how.queries + kQueryTile - 1) / kQueryTile;
  const Room room(how, scratch);
  const Bf16Products way = products_of(how, {q, k, v});
  float *const largest = room.by_query, *const total = largest + kQueryTile;
  for (std::int64_t item = begin; item < end; ++item) {
    const std::int64_t query = item % tiles * kQueryTile;
    Tile tile{.head = item / tiles, .query = query, .queries = std::min(kQueryTile, how.queries - query)};
    const auto h = static_cast<std::size_t>(tile.head);
    const Factor q_rows =
        factor_rows(way, q, how.q.heads[h] + query * how.q.step, how.q.step, tile.queries, how.inner, room.q);
    const SummedRows result(y, how.y.heads[h] + query * how.y.step, how.y.step, tile.queries, how.values,
                            room.y);
    result.clear();
    std::fill_n(largest, tile.queries, kNothing);
    std::fill_n(total, tile.queries, 0.0f);
    for_key_tiles(how.of, tile, [&] {
      const Factor k_rows = factor_rows(way, k, how.k.heads[h] + tile.key * how.k.step, how.k.step, tile.keys,
                                        how.inner, room.k);
      const Factor v_rows = factor_rows(way, v, how.v.heads[h] + tile.key * how.v.step, how.v.step, tile.keys,
                                        how.values, room.v);
      score(how, tile, q_rows, k_rows, mask, room.scores);
      for (std::int64_t row = 0; row < tile.queries; ++row) {
        float* const line = room.scores + row * kKeyTile;
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
          scale_row(less, result.sums[row], how.values);
        }
        largest[row] = now;
        total[row] += exponential_row(line + seen.begin, now, line + seen.begin, n);
      }
      multiply_factors(Transpose::no, Transpose::no, tile.queries, how.values, tile.keys, 1,
                       weights_of(way, room.scores, tile.queries, tile.keys), v_rows, 1, result.sums,
                       tile.hidden(how.of, Side::k, Side::m));
    });
    float* const sums = log_sum + how.log_sum.heads[h] + query * how.log_sum.step;
    for (std::int64_t row = 0; row < tile.queries; ++row) {
      const bool saw = largest[row] != kNothing;
      if (saw) scale_row(1 / total[row], result.sums[row], how.values);
      sums[row * how.log_sum.step] = saw ? largest[row] + std::log(total[row]) : kNothing;
    }
    result.finish();
  }
}

namespace {

// The contribution of one head to the gradients of its queries and of the keys and values it
// shares.
void attend_head_gradient(const Attention& how, std::int64_t head, AttentionInput q, AttentionInput k,
                          AttentionInput v, AttentionInput y, const float* log_sum, AttentionInput dy,
                          const std::uint8_t* mask, AttentionOutput dq, OwnRows dk, OwnRows dv,
                          const Room& room) {
  const auto h = static_cast<std::size_t>(head);
  const auto factor = static_cast<float>(how.of.scale / how.of.divisor);
  const Bf16Products way = products_of(how, {q, k, v, dy});
  for (std::int64_t query = 0; query < how.queries; query += kQueryTile) {
    Tile tile{.head = head, .query = query, .queries = std::min(kQueryTile, how.queries - query)};
    const std::int64_t m = tile.queries;
    const Factor q_rows =
        factor_rows(way, q, how.q.heads[h] + query * how.q.step, how.q.step, m, how.inner, room.q);
    const Rows y_rows = wide_rows(y, how.y.heads[h] + query * how.y.step, how.y.step, m, how.values, room.y);
    const std::int64_t dy_at = how.dy.heads[h] + query * how.dy.step;
    const Rows wide_dy = wide_rows(dy, dy_at, how.dy.step, m, how.values, room.dy);
    const Factor dy_rows = way != Bf16Products::widened
                               ? factor_rows(way, dy, dy_at, how.dy.step, m, how.values, room.dy)
                               : Factor(wide_dy);
    const SummedRows dq_rows(dq, how.dq.heads[h] + query * how.dq.step, how.dq.step, m, how.inner, room.dq);
    dq_rows.clear();
    const float* const sums = log_sum + how.log_sum.heads[h] + query * how.log_sum.step;
    float* const along = room.by_query;  // per row: the sum of p dp
    for (std::int64_t row = 0; row < m; ++row) along[row] = dot_lanes(y_rows[row], wide_dy[row], how.values);
    for_key_tiles(how.of, tile, [&] {
      const std::int64_t n = tile.keys;
      const Factor k_rows =
          factor_rows(way, k, how.k.heads[h] + tile.key * how.k.step, how.k.step, n, how.inner, room.k);
      const Factor v_rows =
          factor_rows(way, v, how.v.heads[h] + tile.key * how.v.step, how.v.step, n, how.values, room.v);
      score(how, tile, q_rows, k_rows, mask, room.scores);
      multiply_factors(Transpose::no, Transpose::yes, m, n, how.values, 1, dy_rows, v_rows, 0,
                       OwnRows{room.slopes, kKeyTile}, tile.hidden(how.of, Side::n, Side::m));
      for (std::int64_t row = 0; row < m; ++row) {
        float *const p = room.scores + row * kKeyTile, *const ds = room.slopes + row * kKeyTile;
        const float sum = sums[row * how.log_sum.step];
        const Range seen = sum == kNothing ? Range{} : tile.seen(how.of, row);
        clear_unseen(tile, seen, p);
        clear_unseen(tile, seen, ds);
        if (seen.empty()) continue;
        const std::int64_t first = seen.begin, count = seen.end - seen.begin;
        exponential_row(p + first, sum, p + first, count);
        softmax_gradient_row(p + first, ds + first, along[row], factor, ds + first, count);
      }
      const Factor weights = weights_of(way, room.scores, m, n), slopes = weights_of(way, room.slopes, m, n);
      const Band of_keys = tile.hidden(how.of, Side::m, Side::k);
      multiply_factors(Transpose::yes, Transpose::no, n, how.values, m, 1, weights, dy_rows, 1,
                       OwnRows{dv[tile.key], dv.step}, of_keys);
      multiply_factors(Transpose::no, Transpose::no, m, how.inner, n, 1, slopes, k_rows, 1, dq_rows.sums,
                       tile.hidden(how.of, Side::k, Side::m));
      multiply_factors(Transpose::yes, Transpose::no, n, how.inner, m, 1, slopes, q_rows, 1,
                       OwnRows{dk[tile.key], dk.step}, of_keys);
    });
    dq_rows.finish();
  }
}

}  // namespace

void attend_gradient(const Attention& how, std::int64_t begin, std::int64_t end, AttentionInput q,
                     AttentionInput k, AttentionInput v, AttentionInput y, const float* log_sum,
                     AttentionInput dy, const std::uint8_t* mask, const AttentionGradients& to,
                     void* scratch) {
  const Room room(how, scratch);
  const auto keys_of = [&](std::int64_t head) {
    return SummedRows(to.dk, how.dk.heads[static_cast<std::size_t>(head)], how.dk.step, how.keys, how.inner,
                      room.dk);
  };
  const auto values_of = [&](std::int64_t head) {
    return SummedRows(to.dv, how.dv.heads[static_cast<std::size_t>(head)], how.dv.step, how.keys, how.values,
                      room.dv);
  };
  for (std::int64_t item = begin; item < end; ++item) {
    const std::int64_t first = item * how.sharing, last = first + how.sharing;
    // Clear all before adding to any: some heads may share keys but not values.
    for (std::int64_t head = first; head < last; ++head) keys_of(head).clear(), values_of(head).clear();
    for (std::int64_t head = first; head < last; ++head)
      attend_head_gradient(how, head, q, k, v, y, log_sum, dy, mask, to.dq, keys_of(head).sums,
                           values_of(head).sums, room);
    keys_of(first).finish();
    values_of(first).finish();
  }
}

void merge_attention(std::int64_t begin, std::int64_t end, std::int64_t values, AttentionPart first,
                     AttentionPart second, float* y, float* log_sum) {
  for (std::int64_t row = begin; row < end; ++row) {
    const float a = first.log_sum[row], b = second.log_sum[row];
    const float peak = a < b || std::isnan(b) ? b : a;
    float of_first = 0, of_second = 0;
    log_sum[row] = peak;
    if (peak != kNothing) {
      of_first = std::exp(a - peak);
      of_second = std::exp(b - peak);
      const float total = of_first + of_second;
      log_sum[row] = peak + std::log(total);
      of_first /= total;
      of_second /= total;
    }
    for (std::int64_t i = row * values; i < (row + 1) * values; ++i)
      y[i] = of_first * first.y[i] + of_second * second.y[i];
  }
}

}  // namespace weft::device::cpu
