#include "weft/device/cpu/lanes.h"

#include <cmath>

#include "weft/device/cpu/instruction_set.h"
#include "weft/device/cpu/lanes_kernels.h"

namespace weft::device::cpu {
namespace {

constexpr bool is_row(Lane lane, std::string_view name) {
  bool same = false;
  std::size_t at = 0;
  std::apply(
      [&](const auto&... row) {
        ((same |= at++ == static_cast<std::size_t>(lane) && row.name == name), ...);
      },
      ops::kPointwiseRows);
  return same;
}
static_assert(is_row(Lane::add, "add") && is_row(Lane::sub, "sub") && is_row(Lane::mul, "mul") &&
              is_row(Lane::div, "div") && is_row(Lane::mod, "mod") && is_row(Lane::pow, "pow") &&
              is_row(Lane::maximum, "maximum") && is_row(Lane::minimum, "minimum"));

const LaneKernels& widest_kernels() {
#if WEFT_LANES_WIDER
  if (instruction_set() == InstructionSet::avx512) return kAvx512Lanes;
  if (instruction_set() == InstructionSet::avx2) return kAvx2Lanes;
#endif
  return WEFT_LANES::kLaneKernels;
}

const LaneKernels& kernels() {
  static const LaneKernels& chosen = widest_kernels();
  return chosen;
}

}  // namespace

void run_lane(Lane lane, std::int64_t n, const LaneOperand* operands, float* result) {
  kernels().run_lane(lane, n, operands, result);
}

float sum_lanes(const float* x, std::int64_t n) { return kernels().sum(x, n); }
float max_lanes(const float* x, std::int64_t n) { return kernels().max(x, n); }
float min_lanes(const float* x, std::int64_t n) { return kernels().min(x, n); }
float dot_lanes(const float* a, const float* b, std::int64_t n) { return kernels().dot(a, b, n); }

void accumulate_lanes(const float* x, float* y, std::int64_t n) { kernels().accumulate(x, y, n); }
void accumulate_product_lanes(const float* a, const float* b, float* y, std::int64_t n) {
  kernels().accumulate_product(a, b, y, n);
}

void softmax_row(const float* x, float* y, std::int64_t n) { kernels().softmax(x, y, n); }
float log_sum_exp_row(const float* x, std::int64_t n, float& max) { return kernels().log_sum_exp(x, n, max); }
float exponential_row(const float* x, float shift, float* y, std::int64_t n) {
  return kernels().exponentials(x, shift, y, n);
}
void softmax_gradient_row(const float* p, const float* dp, float along, float factor, float* ds,
                          std::int64_t n) {
  kernels().softmax_slope(p, dp, along, factor, ds, n);
}
void layer_norm_row(const float* x, float* y, std::int64_t n, float epsilon, float& rstd) {
  kernels().layer_norm(x, y, n, epsilon, rstd);
}
void rms_norm_row(const float* x, float* y, std::int64_t n, float epsilon, float& rstd) {
  kernels().rms_norm(x, y, n, epsilon, rstd);
}

void channel_sums(const ChannelBlock& block, double* totals) { kernels().channel_sums(block, totals); }
void channel_squares(const ChannelBlock& block, const float* means, double* totals) {
  kernels().channel_squares(block, means, totals);
}
void channel_normalize(const ChannelBlock& block, const float* means, const float* factors, float* y) {
  kernels().channel_normalize(block, means, factors, y);
}

void correlate(const Correlation& of) { kernels().correlate(of); }
void correlate_gradient(const Correlation& of, float* dw) { kernels().correlate_gradient(of, dw); }
void max_of_windows(const Correlation& of) { kernels().max_of_windows(of); }
void mean_of_windows(const Correlation& of) { kernels().mean_of_windows(of); }
void scatter_to_maximum(const Correlation& of, float* dx) { kernels().scatter_to_maximum(of, dx); }
void copy_rows(std::int64_t rows, std::int64_t width, const float* from, std::int64_t from_step, float* to,
               std::int64_t to_step) {
  kernels().copy_rows(rows, width, from, from_step, to, to_step);
}
void split_rows(std::int64_t rows, std::int64_t width, const float* from, std::int64_t from_step, float* even,
                float* odd, std::int64_t to_step) {
  kernels().split_rows(rows, width, from, from_step, even, odd, to_step);
}
void max_of_squares(std::int64_t rows, std::int64_t width, std::int64_t out_width, const float* x, float* y) {
  kernels().max_of_squares(rows, width, out_width, x, y);
}

void sgd_lanes(std::int64_t n, float lr, const float* weight, const float* gradient, float* next_weight) {
  kernels().sgd(n, lr, weight, gradient, next_weight);
}

void momentum_lanes(std::int64_t n, const MomentumStep& step, const float* weight, const float* gradient,
                    const float* velocity, float* next_weight, float* next_velocity) {
  kernels().momentum(n, step, weight, gradient, velocity, next_weight, next_velocity);
}

AdamStep adam_step(double lr, double beta1, double beta2, double epsilon, std::int64_t steps_done,
                   double weight_decay) {
  const auto narrow = [](double x) { return static_cast<float>(x); };
  const auto correction = [&](double beta) {
    return narrow(1 - std::pow(narrow(beta), static_cast<double>(steps_done + 1)));
  };
  return {.lr = narrow(lr),
          .beta1 = narrow(beta1),
          .beta2 = narrow(beta2),
          .epsilon = narrow(epsilon),
          .correction1 = correction(beta1),
          .correction2 = correction(beta2),
          .weight_decay = narrow(weight_decay)};
}

void adam_lanes(std::int64_t n, const AdamStep& step, const float* weight, const float* gradient,
                const float* first, const float* second, float* next_weight, float* next_first,
                float* next_second) {
  kernels().adam(n, step, weight, gradient, first, second, next_weight, next_first, next_second);
}

}  // namespace weft::device::cpu
