#include "weft/device/cuda/expression.h"

#include <cmath>

#include <fmt/format.h>

#include "weft/base/check.h"
#include "weft/plan/ops/pointwise.h"

namespace weft::device::cuda {
namespace {

struct Form {
  std::string_view name;  // of ops/pointwise.cpp
  std::string_view text;  // {0}, {1}, {2}: the operands
};

// Functions by their accurate versions: what a step computes must not depend on where it runs by more than
// rounding does.
constexpr Form kForms[] = {
    {"add", "({0} + {1})"},
    {"sub", "({0} - {1})"},
    {"mul", "({0} * {1})"},
    {"div", "({0} / {1})"},
    {"mod", "fmodf({0}, {1})"},
    {"pow", "powf({0}, {1})"},
    {"maximum", "weft_max({0}, {1})"},
    {"minimum", "weft_min({0}, {1})"},
    {"neg", "(-{0})"},
    {"abs", "fabsf({0})"},
    {"equal", "({0} == {1} ? 1.0f : 0.0f)"},
    {"not-equal", "({0} != {1} ? 1.0f : 0.0f)"},
    {"less", "({0} < {1} ? 1.0f : 0.0f)"},
    {"less-equal", "({0} <= {1} ? 1.0f : 0.0f)"},
    {"greater", "({0} > {1} ? 1.0f : 0.0f)"},
    {"greater-equal", "({0} >= {1} ? 1.0f : 0.0f)"},
    {"and", "({0} * {1})"},
    {"or", "({0} + {1} - {0} * {1})"},
    {"not", "(1.0f - {0})"},
    {"select", "({0} == 0.0f ? {2} : {1})"},
    {"exp", "expf({0})"},
    {"log", "logf({0})"},
    {"sqrt", "sqrtf({0})"},
    {"rsqrt", "(1.0f / sqrtf({0}))"},
    {"sin", "sinf({0})"},
    {"cos", "cosf({0})"},
    {"tanh", "tanhf({0})"},
    {"erf", "erff({0})"},
    {"sigmoid", "weft_sigmoid({0})"},
    {"relu", "weft_max({0}, 0.0f)"},
    {"gelu", "({0} * weft_normal_below({0}))"},
    {"gelu-tanh", "(0.5f * {0} * (1.0f + weft_tanh_of_cubic({0})))"},
    {"silu", "({0} * weft_sigmoid({0}))"},
    {"gelu-gradient", "({0} * (weft_normal_below({1}) + {1} * weft_normal_density({1})))"},
    {"gelu-tanh-gradient", "({0} * weft_gelu_tanh_slope({1}))"},
    {"silu-gradient", "({0} * weft_silu_slope({1}))"},
};

constexpr std::string_view kPrelude = R"(
#define WEFT_INFINITY __int_as_float(0x7f800000)
// Narrow numbers in memory: whatever is computed with them is f32, and rounded to the nearest when it is stored.
struct weft_bf16 {
  unsigned short bits;
  weft_bf16() = default;
  __device__ __forceinline__ weft_bf16(float x) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  __device__ __forceinline__ operator float() const { return __uint_as_float(unsigned(bits) << 16); }
};
struct weft_f16 {
  unsigned short bits;
  weft_f16() = default;
  __device__ __forceinline__ weft_f16(float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  __device__ __forceinline__ operator float() const {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
  }
};
__device__ __forceinline__ float weft_max(float a, float b) { return a > b || a != a ? a : b; }
__device__ __forceinline__ float weft_min(float a, float b) { return a < b || a != a ? a : b; }
__device__ __forceinline__ float weft_add(float a, float b) { return a + b; }
__device__ __forceinline__ float weft_sigmoid(float x) {
  const float e = expf(-fabsf(x));
  return x < 0.0f ? e / (1.0f + e) : 1.0f / (1.0f + e);
}
__device__ __forceinline__ float weft_normal_below(float x) { return 0.5f * (1.0f + erff(x * 0.70710678118654752f)); }
__device__ __forceinline__ float weft_normal_density(float x) { return 0.39894228040143268f * expf(-0.5f * x * x); }
__device__ __forceinline__ float weft_tanh_of_cubic(float x) {
  return tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x));
}
__device__ __forceinline__ float weft_gelu_tanh_slope(float x) {
  const float t = weft_tanh_of_cubic(x);
  const float inner = 0.79788456080286536f * (1.0f + 3.0f * 0.044715f * x * x);
  return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * inner;
}
__device__ __forceinline__ float weft_silu_slope(float x) {
  const float s = weft_sigmoid(x);
  return s * (1.0f + x * (1.0f - s));
}
// Every thread of a row gets the whole of what each had a part of, in one order.
template <class F>
__device__ __forceinline__ float weft_over_warp(float x, F join) {
  for (int lane = 16; lane > 0; lane /= 2) x = join(x, __shfl_xor_sync(0xffffffffu, x, lane));
  return x;
}
template <int kThreads, class F>
__device__ __forceinline__ float weft_over_row(float x, float identity, F join) {
  x = weft_over_warp(x, join);
  if (kThreads <= 32) return x;
  __shared__ float parts[32];
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  x = threadIdx.x % 32 < kThreads / 32 ? parts[threadIdx.x % 32] : identity;
  return weft_over_warp(x, join);
}
struct weft_join_sum { __device__ float operator()(float a, float b) const { return a + b; } };
struct weft_join_max { __device__ float operator()(float a, float b) const { return weft_max(a, b); } };
struct weft_join_min { __device__ float operator()(float a, float b) const { return weft_min(a, b); } };
)";

constexpr std::string_view kPack = R"(
template <class T, int kCount>
struct alignas(sizeof(T) * kCount < 16 ? sizeof(T) * kCount : 16) weft_pack { T x[kCount]; };
)";

}  // namespace

std::optional<std::string> expression(const plan::Operator& op, std::span<const std::string> operands) {
  const ops::Pointwise* const row = ops::find_pointwise(op);
  if (row == nullptr) return {};
  for (const Form& form : kForms) {
    if (form.name != row->name) continue;
    const auto at = [&](std::size_t i) { return i < operands.size() ? operands[i] : std::string(); };
    return fmt::format(fmt::runtime(form.text), at(0), at(1), at(2));
  }
  return {};
}

std::string combined(plan::Monoid monoid, std::string_view a, std::string_view b) {
  if (monoid == plan::Monoid::max) return fmt::format("weft_max({}, {})", a, b);
  if (monoid == plan::Monoid::min) return fmt::format("weft_min({}, {})", a, b);
  return fmt::format("({} + {})", a, b);
}

std::string_view identity(plan::Monoid monoid) {
  if (monoid == plan::Monoid::max) return "-WEFT_INFINITY";
  if (monoid == plan::Monoid::min) return "WEFT_INFINITY";
  return "0.0f";
}

std::string number(double value) {
  const auto single = static_cast<float>(value);
  if (std::isnan(single)) return "__int_as_float(0x7fc00000)";
  if (std::isinf(single)) return single > 0 ? "WEFT_INFINITY" : "(-WEFT_INFINITY)";
  // Nine digits name a float.
  std::string text = fmt::format("{:.9g}", single);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return single < 0 || std::signbit(single) ? fmt::format("({}f)", text) : text + "f";
}

std::string_view prelude() { return kPrelude; }

std::string_view pack_text() { return kPack; }

std::string_view type_name(plan::DType dtype) {
  switch (dtype) {
    case plan::DType::f32: return "float";
    case plan::DType::f64: return "double";
    case plan::DType::i32: return "int";
    case plan::DType::i64: return "long long";
    case plan::DType::bf16: return "weft_bf16";
    case plan::DType::f16: return "weft_f16";
    case plan::DType::boolean:
    case plan::DType::f8e4m3:
    case plan::DType::f8e5m2: break;
  }
  return "unsigned char";
}

}  // namespace weft::device::cuda
