#include "weft/device/cpu/pooling.h"

#include <algorithm>
#include <limits>

#include "weft/device/cpu/lanes.h"
#include "weft/device/cpu/phased_plane.h"

namespace weft::device::cpu {
namespace {

// The common case: 2 x 2 windows that neither overlap nor reach outside the plane.
bool is_square_of_two(const Pooling& pool) {
  return pool.size == 2 && pool.stride == 2 && pool.padding == 0 && pool.padding_width == 0 &&
         2 * pool.out_height <= pool.height && 2 * pool.out_width <= pool.width;
}

// The elements of a window that are inside the plane.
struct Window {
  std::int64_t top, bottom, left, right;

  Window(const Pooling& pool, std::int64_t p, std::int64_t t)
      : top(std::max<std::int64_t>(p * pool.stride - pool.padding, 0)),
        bottom(std::min(p * pool.stride - pool.padding + pool.size, pool.height)),
        left(std::max<std::int64_t>(t * pool.stride - pool.padding_width, 0)),
        right(std::min(t * pool.stride - pool.padding_width + pool.size, pool.width)) {}

  template <class Visit>
  void visit(const Pooling& pool, Visit see) const {
    for (std::int64_t h = top; h < bottom; ++h)
      for (std::int64_t w = left; w < right; ++w) see(h * pool.width + w);
  }
};

// Calls run(offset of the plane in x, offset of the window in y, window).
template <class Run>
void for_windows(const Pooling& pool, std::int64_t begin, std::int64_t end, Run run) {
  const std::int64_t points = pool.height * pool.width, out_points = pool.out_height * pool.out_width;
  for (std::int64_t plane = begin; plane < end; ++plane)
    for (std::int64_t p = 0; p < pool.out_height; ++p)
      for (std::int64_t t = 0; t < pool.out_width; ++t)
        run(plane * points, plane * out_points + p * pool.out_width + t, Window(pool, p, t));
}

// A plane with its border as lines for sliding windows, as in direct_convolution.h.
class PlaneLine {
 public:
  static constexpr std::int64_t kMostTaps = 64;

  PlaneLine(const Pooling& pool, void* scratch) : pool_(pool), line_(static_cast<float*>(scratch)) {
    const auto reach = [&](std::int64_t size, std::int64_t padding, std::int64_t places) {
      const std::int64_t most = std::max(size + padding, (places - 1) * pool.stride + pool.size);
      return (most + pool.stride - 1) / pool.stride;
    };
    rows_ = reach(pool.height, pool.padding, pool.out_height);
    columns_ = reach(pool.width, pool.padding_width, pool.out_width);
    const std::int64_t s = pool.stride;
    for (std::int64_t r = 0; r < pool.size && taps() <= kMostTaps; ++r)
      for (std::int64_t q = 0; q < pool.size; ++q)
        offsets_[r * pool.size + q] = (r % s * s + q % s) * rows_ * columns_ + r / s * columns_ + q / s;
  }

  std::int64_t floats() const { return 2 * inputs() + places(); }
  bool slides() const { return taps() <= kMostTaps; }

  // Calls combine(windows of the line) for each plane of [begin, end), with borders set to
  // `outside`.
  template <class Combine>
  void run(std::int64_t begin, std::int64_t end, float outside, const float* x, float* y,
           Combine combine) const {
    std::fill_n(line_, inputs(), outside);
    float* const places = line_ + inputs();
    const PhasedPlane phases = phased();
    for (std::int64_t plane = begin; plane < end; ++plane) {
      split_plane(phases, x + plane * pool_.height * pool_.width, line_);
      combine(windows(places));
      copy_rows(pool_.out_height, pool_.out_width, places, columns_,
                y + plane * pool_.out_height * pool_.out_width, pool_.out_width);
    }
  }

  // Adds dy of each window at its maximum.
  void run_back(std::int64_t begin, std::int64_t end, const float* dy, const float* x, float* dx) const {
    std::fill_n(line_, inputs(), std::numeric_limits<float>::quiet_NaN());
    float *const given = line_ + inputs(), *const taken = given + places();
    const PhasedPlane phases = phased();
    std::fill_n(given, places(), 0.0f);
    for (std::int64_t plane = begin; plane < end; ++plane) {
      split_plane(phases, x + plane * pool_.height * pool_.width, line_);
      copy_rows(pool_.out_height, pool_.out_width, dy + plane * pool_.out_height * pool_.out_width,
                pool_.out_width, given, columns_);
      std::fill_n(taken, inputs(), 0.0f);
      scatter_to_maximum(windows(given), taken);
      join_plane(phases, taken, dx + plane * pool_.height * pool_.width);
    }
  }

 private:
  std::int64_t taps() const { return pool_.size * pool_.size; }
  std::int64_t places() const { return rows_ * columns_ + kSlack; }

  PhasedPlane phased() const {
    return {.height = pool_.height,
            .width = pool_.width,
            .padding = pool_.padding,
            .padding_width = pool_.padding_width,
            .stride = pool_.stride,
            .columns = columns_,
            .phase = rows_ * columns_};
  }
  Correlation windows(float* of_places) const {
    return {.x = line_,
            .offsets = offsets_,
            .taps = taps(),
            .length = (pool_.out_height - 1) * columns_ + pool_.out_width,
            .y = of_places};
  }
  std::int64_t inputs() const { return pool_.stride * pool_.stride * rows_ * columns_ + kSlack; }

  const Pooling& pool_;
  float* const line_;
  std::int64_t rows_ = 0, columns_ = 0;  // of a line
  std::int64_t offsets_[kMostTaps] = {};
};

float larger(float a, float b) { return a < b || b != b ? b : a; }

// Calls run(start of a pair of rows in x, start of the row in y).
template <class Run>
void for_row_pairs(const Pooling& pool, std::int64_t begin, std::int64_t end, Run run) {
  for (std::int64_t plane = begin; plane < end; ++plane)
    for (std::int64_t p = 0; p < pool.out_height; ++p)
      run((plane * pool.height + 2 * p) * pool.width, (plane * pool.out_height + p) * pool.out_width);
}

void clear(const Pooling& pool, std::int64_t begin, std::int64_t end, float* dx) {
  const std::int64_t points = pool.height * pool.width;
  std::fill_n(dx + begin * points, (end - begin) * points, 0.0f);
}

// Whether 2 x 2 windows leave out a last row or column of x.
bool leaves_rest(const Pooling& pool) {
  return pool.height != 2 * pool.out_height || pool.width != 2 * pool.out_width;
}

}  // namespace

std::size_t scratch_bytes(const Pooling& pool) {
  const PlaneLine line(pool, nullptr);
  return line.slides() ? static_cast<std::size_t>(line.floats()) * sizeof(float) : 0;
}

void max_pool(const Pooling& pool, std::int64_t begin, std::int64_t end, const float* x, float* y,
              void* scratch) {
  if (is_square_of_two(pool)) {
    // Planes of even height are contiguous pairs of rows.
    const std::int64_t together =
        pool.height == 2 * pool.out_height ? std::max(end - begin, std::int64_t{1}) : 1;
    for (std::int64_t plane = begin; plane < end; plane += together)
      max_of_squares(together * pool.out_height, pool.width, pool.out_width,
                     x + plane * pool.height * pool.width, y + plane * pool.out_height * pool.out_width);
    return;
  }
  if (const PlaneLine line(pool, scratch); line.slides())
    return line.run(begin, end, -std::numeric_limits<float>::infinity(), x, y, max_of_windows);
  for_windows(pool, begin, end, [&](std::int64_t plane, std::int64_t in_y, const Window& window) {
    float largest = x[plane + window.top * pool.width + window.left];
    window.visit(pool, [&](std::int64_t place) { largest = larger(largest, x[plane + place]); });
    y[in_y] = largest;
  });
}

void max_pool_gradient(const Pooling& pool, std::int64_t begin, std::int64_t end, const float* dy,
                       const float* x, float* dx, void* scratch) {
  if (is_square_of_two(pool)) {
    if (leaves_rest(pool)) clear(pool, begin, end, dx);
    return for_row_pairs(pool, begin, end, [&](std::int64_t in_x, std::int64_t in_y) {
      const float *upper = x + in_x, *lower = upper + pool.width;
      float *upper_out = dx + in_x, *lower_out = upper_out + pool.width;
      for (std::int64_t t = 0; t < pool.out_width; ++t) {
        const float a = upper[2 * t], b = upper[2 * t + 1], c = lower[2 * t], d = lower[2 * t + 1];
        // A later element receives the gradient only if it is larger than all before it.
        const bool is_b = a < b;
        const float above = is_b ? b : a;
        const bool is_c = above < c;
        const float before = is_c ? c : above;
        const bool is_d = before < d;
        const float gradient = dy[in_y + t];
        const float for_abc = is_d ? 0.0f : gradient, for_ab = is_c ? 0.0f : for_abc;
        lower_out[2 * t + 1] = is_d ? gradient : 0.0f;
        lower_out[2 * t] = is_c ? for_abc : 0.0f;
        upper_out[2 * t + 1] = is_b ? for_ab : 0.0f;
        upper_out[2 * t] = is_b ? 0.0f : for_ab;
      }
    });
  }
  if (const PlaneLine line(pool, scratch); line.slides()) return line.run_back(begin, end, dy, x, dx);
  clear(pool, begin, end, dx);
  for_windows(pool, begin, end, [&](std::int64_t plane, std::int64_t in_y, const Window& window) {
    std::int64_t largest = window.top * pool.width + window.left;
    window.visit(pool, [&](std::int64_t place) {
      if (x[plane + largest] < x[plane + place]) largest = place;
    });
    dx[plane + largest] += dy[in_y];
  });
}

void avg_pool(const Pooling& pool, std::int64_t begin, std::int64_t end, const float* x, float* y,
              void* scratch) {
  if (is_square_of_two(pool))
    return for_row_pairs(pool, begin, end, [&](std::int64_t in_x, std::int64_t in_y) {
      const float *upper = x + in_x, *lower = upper + pool.width;
      for (std::int64_t t = 0; t < pool.out_width; ++t)
        y[in_y + t] = (upper[2 * t] + upper[2 * t + 1] + lower[2 * t] + lower[2 * t + 1]) * 0.25f;
    });
  if (const PlaneLine line(pool, scratch); line.slides())
    return line.run(begin, end, 0.0f, x, y, mean_of_windows);
  const auto points = static_cast<float>(pool.size * pool.size);
  for_windows(pool, begin, end, [&](std::int64_t plane, std::int64_t in_y, const Window& window) {
    float total = 0;
    window.visit(pool, [&](std::int64_t place) { total += x[plane + place]; });
    y[in_y] = total / points;
  });
}

void avg_pool_gradient(const Pooling& pool, std::int64_t begin, std::int64_t end, const float* dy,
                       float* dx) {
  if (is_square_of_two(pool)) {
    if (leaves_rest(pool)) clear(pool, begin, end, dx);
    return for_row_pairs(pool, begin, end, [&](std::int64_t in_x, std::int64_t in_y) {
      float *upper = dx + in_x, *lower = upper + pool.width;
      for (std::int64_t t = 0; t < pool.out_width; ++t)
        upper[2 * t] = upper[2 * t + 1] = lower[2 * t] = lower[2 * t + 1] = dy[in_y + t] * 0.25f;
    });
  }
  clear(pool, begin, end, dx);
  const auto points = static_cast<float>(pool.size * pool.size);
  for_windows(pool, begin, end, [&](std::int64_t plane, std::int64_t in_y, const Window& window) {
    const float share = dy[in_y] / points;
    window.visit(pool, [&](std::int64_t place) { dx[plane + place] += share; });
  });
}

}  // namespace weft::device::cpu
