// weft/device/cpu/lanes.h -- vectorized element loops: a call runs one instruction on many floats.
//
//                 x: 64 to 2048 floats that stay in L1
//   mul  t, x, x       run_lane(Lane::mul, n, {x, x}, t)
//   add  t, t, 1       run_lane(Lane::add, n, {t, 1}, t)        a scalar operand applies to all lanes
//   tanh t, t          run_lane(Lane::tanh, n, {t}, t)          in place
//
// A fused chain of operators runs as such a program, block by block, like an expression in a
// vectorized database engine: the cost of dispatching an instruction is paid once per block.
//
// A lane computes the operator of the same name in ops/, on f32; a boolean is 1 or 0. NaN and
// infinities are handled. Arithmetic, comparisons and select match ops/ bit for bit, except for NaN
// payloads. lanes_math.h gives the error bounds of the other functions, which may flush subnormal
// results to 0.
//
// Deterministic: a lane's result depends only on its operands, never on n, on its position in the
// block or on alignment. Sums use one fixed order for any vector width. A multiply-add is fused if
// the machine supports it.
//
// Pointers need no alignment. A result may alias an operand exactly but must not overlap it
// otherwise. Functions do not allocate, cannot fail and are thread-safe.
#pragma once
#include <cstdint>

namespace weft::device::cpu {

// A pointwise function: its row number in ops/pointwise_rows.h. Only those that kernels name are
// listed.
enum class Lane : std::uint8_t { add, sub, mul, div, mod, pow, maximum, minimum };

struct LaneOperand {
  const float* data;
  bool scalar = false;  // one value for all lanes
};

// result[i] = lane(operands[0][i], ..) for i in [0, n), with 1, 2 or 3 operands according to its
// row.
void run_lane(Lane lane, std::int64_t n, const LaneOperand* operands, float* result);

// Reductions. Without elements they give 0, -inf, inf and 0. NaN propagates.
float sum_lanes(const float* x, std::int64_t n);
float max_lanes(const float* x, std::int64_t n);
float min_lanes(const float* x, std::int64_t n);
float dot_lanes(const float* a, const float* b, std::int64_t n);

void accumulate_lanes(const float* x, float* y, std::int64_t n);                          // y += x
void accumulate_product_lanes(const float* a, const float* b, float* y, std::int64_t n);  // y += a * b

// Row functions: y may alias x.

// y = exp(x - max) / sum of exp(x - max). A row of only -inf becomes zeros.
void softmax_row(const float* x, float* y, std::int64_t n);
// log of the sum of exp(x); also returns the largest x. Both are -inf without elements or with only
// -inf.
float log_sum_exp_row(const float* x, std::int64_t n, float& max);
// y = exp(x - shift); returns the sum of y.
float exponential_row(const float* x, float shift, float* y, std::int64_t n);
// Backward pass of softmax: ds = p * (dp - along) * factor. ds may alias dp.
void softmax_gradient_row(const float* p, const float* dp, float along, float factor, float* ds,
                          std::int64_t n);
// y = (x - mean) * rstd, rstd = 1 / sqrt(variance + epsilon), with the biased variance.
void layer_norm_row(const float* x, float* y, std::int64_t n, float epsilon, float& rstd);
// y = x * rstd, rstd = 1 / sqrt(mean of x^2 + epsilon)
void rms_norm_row(const float* x, float* y, std::int64_t n, float epsilon, float& rstd);

// Channels [0, count) of x[batch, .., inner], whose batch rows are `step` apart.
inline constexpr std::int64_t kMostChannels = 64;  // per call
struct ChannelBlock {
  const float* x = nullptr;
  std::int64_t batch = 0, step = 0, count = 0, inner = 1;
};
void channel_sums(const ChannelBlock& block, double* totals);
void channel_squares(const ChannelBlock& block, const float* means, double* totals);  // sums of (x - mean)^2
// y = (x - mean) * factor
void channel_normalize(const ChannelBlock& block, const float* means, const float* factors, float* y);

// Windows that slide over positions [0, length) of a line of floats: element k of the window at
// position p is x[p + offsets[k]]. Whole vectors are read and written: up to kSlack floats past the
// end of a line.
inline constexpr std::int64_t kSlack = 16;
struct Correlation {
  const float* x = nullptr;
  std::int64_t channel = 0, channels = 1;  // stride and number of the lines of x
  const std::int64_t* offsets = nullptr;
  std::int64_t taps = 0;
  const float* w = nullptr;  // [outs][channels][taps], with outs w_out apart
  std::int64_t w_out = 0, outs = 1, length = 0;
  float* y = nullptr;  // lines y_out apart
  std::int64_t y_out = 0;
};
// y[o][p] = sum over c and k of w[o][c][k] * x[c][p + offsets[k]]
void correlate(const Correlation& of);
// dw[o][c][k] += sum over p of y[o][p] * x[c][p + offsets[k]]. Past `length`, y must be 0 and x
// finite.
void correlate_gradient(const Correlation& of, float* dw);
// y[p] = the maximum, or the mean, of the window's elements.
void max_of_windows(const Correlation& of);
void mean_of_windows(const Correlation& of);
// dx[p + offsets[k]] += y[p] for the first k with the maximum of the window. NaN elements are
// skipped.
void scatter_to_maximum(const Correlation& of, float* dx);
// Copies rows `from_step` apart to rows `to_step` apart: whole, or split into even and odd
// elements.
void copy_rows(std::int64_t rows, std::int64_t width, const float* from, std::int64_t from_step, float* to,
               std::int64_t to_step);
void split_rows(std::int64_t rows, std::int64_t width, const float* from, std::int64_t from_step, float* even,
                float* odd, std::int64_t to_step);
// Maximum of each 2 x 2 square: rows of y from pairs of rows of x.
void max_of_squares(std::int64_t rows, std::int64_t width, std::int64_t out_width, const float* x, float* y);

// Optimizers: one step for n weights. Each next_ array may alias the array it updates.

// w' = w - lr * g
void sgd_lanes(std::int64_t n, float lr, const float* weight, const float* gradient, float* next_weight);

struct MomentumStep {
  float lr, momentum;
};
// m' = momentum * m + g,  w' = w - lr * m'
void momentum_lanes(std::int64_t n, const MomentumStep& step, const float* weight, const float* gradient,
                    const float* velocity, float* next_weight, float* next_velocity);

struct AdamStep {
  float lr, beta1, beta2, epsilon;
  float correction1, correction2;  // 1 - beta1^t and 1 - beta2^t, where t counts steps from 1
  float weight_decay = 0;          // for adamw; 0 gives adam
};
// The step after `steps_done` others. The corrections use the betas as rounded to float: 1 - 0.999
// is off by 5e-5 there, and the correction must match the averages that it corrects.
AdamStep adam_step(double lr, double beta1, double beta2, double epsilon, std::int64_t steps_done,
                   double weight_decay = 0);
// m' = beta1 * m + (1 - beta1) * g,  v' = beta2 * v + (1 - beta2) * g^2
// w' = w - lr * ((m' / correction1) / (sqrt(v' / correction2) + epsilon) + weight_decay * w)
void adam_lanes(std::int64_t n, const AdamStep& step, const float* weight, const float* gradient,
                const float* first, const float* second, float* next_weight, float* next_first,
                float* next_second);

}  // namespace weft::device::cpu
