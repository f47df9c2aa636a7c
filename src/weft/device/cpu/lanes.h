// weft/device/cpu/lanes.h -- element loops of the processor: one call, one instruction, a block of floats.
//
//                 x: 64 to 2048 floats that stay in the first cache
//   mul  t, x, x       run_lane(Lane::mul, n, {x, x}, t)
//   add  t, t, 1       run_lane(Lane::add, n, {t, 1}, t)        a scalar operand serves all lanes
//   tanh t, t          run_lane(Lane::tanh, n, {t}, t)          in place
//
// A fused chain of operators runs as such a program, block after block, as a vectorised database
// engine runs an expression: what an instruction costs to choose is paid once a block.
//
// A lane means what the operator of the same name in ops/ means, on f32; a boolean is 1 or 0.
// NaN and infinities behave. Arithmetic, comparisons and select agree with ops/ to the bit (the
// payload of a NaN aside); lanes_math.h says how close the other functions come, and that results
// too small for a normal float may become 0.
//
// Deterministic: a lane's result depends on its operands alone, never on n, on its place in the block
// or on alignment. Sums add in one fixed order whatever the width of the machine's vectors, though
// where the machine can multiply and add in one rounding, it does.
//
// Pointers need no alignment. A result may be an operand's own memory but must not overlap it otherwise.
// Nothing allocates, nothing fails, any thread may call.
#pragma once
#include <cstdint>

namespace weft::device::cpu {

// A pointwise function by the place of its row in ops/pointwise_rows.h. Those that kernels call have a name here.
enum class Lane : std::uint8_t { add, sub, mul, div, mod, pow, maximum, minimum };

struct LaneOperand {
  const float* data;
  bool scalar = false;  // one value for all lanes
};

// result[i] = lane(operands[0][i], ..) for i in [0, n), with as many operands as its row says: 1, 2 or 3.
void run_lane(Lane lane, std::int64_t n, const LaneOperand* operands, float* result);

// Reductions. Of no elements: 0, -inf, inf, 0. A NaN among the elements is never lost.
float sum_lanes(const float* x, std::int64_t n);
float max_lanes(const float* x, std::int64_t n);
float min_lanes(const float* x, std::int64_t n);
float dot_lanes(const float* a, const float* b, std::int64_t n);

void accumulate_lanes(const float* x, float* y, std::int64_t n);                          // y += x
void accumulate_product_lanes(const float* a, const float* b, float* y, std::int64_t n);  // y += a * b

// Rows: y may be x.

// y = exp(x - max) / sum of exp(x - max). A row of -inf throughout becomes zeros.
void softmax_row(const float* x, float* y, std::int64_t n);
// log of the sum of exp(x), and the largest x on the way: -inf of no elements, or of -inf alone.
float log_sum_exp_row(const float* x, std::int64_t n, float& max);
// y = exp(x - shift), and their sum.
float exponential_row(const float* x, float shift, float* y, std::int64_t n);
// ds = p * (dp - along) * factor: from the gradient of a softmax to that of what it was taken of. ds may be dp.
void softmax_slope_row(const float* p, const float* dp, float along, float factor, float* ds, std::int64_t n);
// y = (x - mean) * rstd, rstd = 1 / sqrt(variance + epsilon); the variance is about the mean, biased.
void layer_norm_row(const float* x, float* y, std::int64_t n, float epsilon, float& rstd);
// y = x * rstd, rstd = 1 / sqrt(mean of x^2 + epsilon)
void rms_norm_row(const float* x, float* y, std::int64_t n, float epsilon, float& rstd);

// Channels [0, count) of x[batch, .., inner], whose rows of the batch are `step` apart.
inline constexpr std::int64_t kMostChannels = 64;  // at a time
struct ChannelBlock {
  const float* x = nullptr;
  std::int64_t batch = 0, step = 0, count = 0, inner = 1;
};
void channel_sums(const ChannelBlock& block, double* totals);
void channel_squares(const ChannelBlock& block, const float* means, double* totals);  // of (x - mean)^2
// y = (x - mean) * factor
void channel_normalize(const ChannelBlock& block, const float* means, const float* factors, float* y);

// Windows that slide over lines of floats, places [0, length) of them: element k of a window at place p is
// x[p + offsets[k]]. Whole vectors are read and written: up to kSlack floats past the end of a line.
inline constexpr std::int64_t kSlack = 16;
struct Correlation {
  const float* x = nullptr;
  std::int64_t channel = 0, channels = 1;  // how far apart the lines of x are, and how many
  const std::int64_t* offsets = nullptr;
  std::int64_t taps = 0;
  const float* w = nullptr;  // [outs][channels][taps], outs w_out apart
  std::int64_t w_out = 0, outs = 1, length = 0;
  float* y = nullptr;  // lines y_out apart
  std::int64_t y_out = 0;
};
// y[o][p] = sum over c and k of w[o][c][k] * x[c][p + offsets[k]]
void correlate(const Correlation& of);
// dw[o][c][k] += sum over p of y[o][p] * x[c][p + offsets[k]]; past `length`, y is 0 and x is finite.
void correlate_gradient(const Correlation& of, float* dw);
// y[p] = the largest, or the mean, of the windows' elements.
void largest_of_windows(const Correlation& of);
void mean_of_windows(const Correlation& of);
// dx[p + offsets[k]] += y[p] of the first k whose element is the largest; what is no number is no element.
void give_to_largest(const Correlation& of, float* dx);
// Rows that lie `from_step` apart, to where they lie `to_step` apart: whole, or elements at even and odd places.
void copy_rows(std::int64_t rows, std::int64_t width, const float* from, std::int64_t from_step, float* to,
               std::int64_t to_step);
void split_rows(std::int64_t rows, std::int64_t width, const float* from, std::int64_t from_step, float* even,
                float* odd, std::int64_t to_step);
// The largest of each two by two: rows of y, of pairs of rows of x.
void largest_of_squares(std::int64_t rows, std::int64_t width, std::int64_t out_width, const float* x,
                        float* y);

// Optimizers: one step of n weights. Each next_ array may be the array it follows.

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
  float weight_decay = 0;          // adamw's; 0 is adam
};
// The step that follows `steps_done` others. Its corrections are of the betas as floats hold them: 1 - 0.999
// is off by 5e-5 there, and what enters a mean must match what corrects it.
AdamStep adam_step(double lr, double beta1, double beta2, double epsilon, std::int64_t steps_done,
                   double weight_decay = 0);
// m' = beta1 * m + (1 - beta1) * g,  v' = beta2 * v + (1 - beta2) * g^2
// w' = w - lr * ((m' / correction1) / (sqrt(v' / correction2) + epsilon) + weight_decay * w)
void adam_lanes(std::int64_t n, const AdamStep& step, const float* weight, const float* gradient,
                const float* first, const float* second, float* next_weight, float* next_first,
                float* next_second);

}  // namespace weft::device::cpu
