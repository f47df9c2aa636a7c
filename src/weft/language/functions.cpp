#include "weft/language/functions.h"

#include <algorithm>
#include <array>
#include <vector>

#include "weft/base/letters.h"
#include "weft/base/symbols.h"
#include "weft/plan/ops/pointwise.h"

namespace weft::language {
namespace {

using enum FunctionKind;

constexpr std::array<std::string_view, 1> kEpsilon = {"epsilon"};
constexpr std::array<std::string_view, 2> kBatchNorm = {"epsilon", "momentum"};
constexpr std::array<std::string_view, 4> kConv = {"stride", "padding", "padding_w", "groups"};
constexpr std::array<std::string_view, 3> kLine = {"stride", "padding", "groups"};
constexpr std::array<std::string_view, 5> kTranspose = {"stride", "padding", "padding_w", "groups", "extra"};
constexpr std::array<std::string_view, 3> kPool = {"size", "stride", "padding"};
constexpr std::array<std::string_view, 1> kAlong = {"along"};
constexpr std::array<std::string_view, 1> kRate = {"rate"};
constexpr std::array<std::string_view, 1> kSmoothing = {"smoothing"};
constexpr std::array<std::string_view, 3> kRotary = {"along", "pairs", "base"};

// clang-format off
constexpr FunctionSpec kFunctions[] = {
    {"argmax", routing, 1, 1, "argmax(x) OVER (PARTITION BY ...)", "position of the largest along the one index outside PARTITION BY"},
    {"argmin", routing, 1, 1, "argmin(x) OVER (PARTITION BY ...)", "position of the smallest along the one index outside PARTITION BY"},
    {"avg_pool", image, 1, 1, "avg_pool(x, size => 2 [, stride => size] [, padding => 0])",
     "mean of each window over the last two indices; padding counts as zeros", kPool},
    {"batch_norm", window, 3, 3, "batch_norm(x, mean, variance [, epsilon => 1e-5] [, momentum => 0.1]) OVER (PARTITION BY ...)",
     "normalizes by the batch's statistics in TRAIN, by the STATEs mean and variance in INFER", kBatchNorm},
    {"concat", other, 1, 64, "concat(a, b, ..., along => i)", "concatenates tensors along one index; a tensor without it counts as one position, other indices are broadcast", kAlong},
    {"conv1d", image, 2, 2, "conv1d(x, w [, stride => 1] [, padding => 0] [, groups => 1])",
     "convolves x[batch, in, length] with w[out, in / groups, length]", kLine},
    {"conv2d", image, 2, 2, "conv2d(x, w [, stride => 1] [, padding => 0] [, padding_w => padding] [, groups => 1])",
     "convolves x[batch, in, height, width] with w[out, in / groups, height, width]", kConv},
    {"conv2d_transpose", image, 2, 2, "conv2d_transpose(x, w [, stride => 1] [, padding => 0] [, padding_w => padding] [, groups => 1] [, extra => 0])",
     "transposed convolution of x[batch, in, height, width] with w[in, out / groups, height, width]", kTranspose},
    {"cross_entropy", window, 2, 2, "cross_entropy(logits, label [, smoothing => 0]) OVER (PARTITION BY ...)",
     "minus the log of the probability that softmax(logits) assigns to the label; 0 where the label is not a class", kSmoothing},
    {"cumprod", other, 1, 1, "cumprod(x, along => s)", "the product of all elements so far along an index", kAlong},
    {"cumsum", other, 1, 1, "cumsum(x, along => s)", "the sum of all elements so far along an index", kAlong},
    {"dropout", other, 1, 1, "dropout(x, rate => 0.1)", "zeroes elements at random in TRAIN and scales the rest; identity in INFER", kRate},
    {"layer_norm", window, 1, 1, "layer_norm(x [, epsilon => 1e-5]) OVER (PARTITION BY ...)",
     "(x - mean) / standard deviation over the indices outside PARTITION BY", kEpsilon},
    {"max", aggregate, 1, 1, "max(x) [OVER (PARTITION BY ...)]", "largest over the indices outside GROUP BY"},
    {"max_pool", image, 1, 1, "max_pool(x, size => 2 [, stride => size] [, padding => 0])",
     "largest of each window over the last two indices", kPool},
    {"mean", aggregate, 1, 1, "mean(x) [OVER (PARTITION BY ...)]", "mean over the indices outside GROUP BY; of cross_entropy, over the rows that have a label"},
    {"min", aggregate, 1, 1, "min(x) [OVER (PARTITION BY ...)]", "smallest over the indices outside GROUP BY"},
    {"one_hot", other, 2, 2, "one_hot(y, c)", "1 at the position along c that y names, 0 elsewhere"},
    {"recurrence", other, 2, 2, "recurrence(a, x, along => s)", "y[s] = a[s] * y[s - 1] + x[s], from zero", kAlong},
    {"rms_norm", window, 1, 1, "rms_norm(x [, epsilon => 1e-5]) OVER (PARTITION BY ...)",
     "x / root mean square over the indices outside PARTITION BY", kEpsilon},
    {"rotary", other, 1, 1, "rotary(x, along => s, pairs => e [, base => 10000])",
     "rotates pairs of features by an angle that grows with the position", kRotary},
    {"size", other, 1, 1, "size(i)", "the size of an index, as a number"},
    {"slot", routing, 3, 3, "slot(expert, x, c) OVER (PARTITION BY ...)",
     "the slot of each choice of one of x experts, with c slots per expert: expert * c + slot, or -1 if full"},
    {"softmax", window, 1, 1, "softmax(x) OVER (PARTITION BY ...)", "exp(x) over its sum along the indices outside PARTITION BY"},
    {"sort", routing, 1, 1, "sort(x) OVER (PARTITION BY ...)", "sorts ascending along the one index outside PARTITION BY"},
    {"stop_gradient", other, 1, 1, "stop_gradient(x)", "x itself, without a gradient in TRAIN"},
    {"sum", aggregate, 1, 1, "sum(x) [OVER (PARTITION BY ...)]", "sum over the indices outside GROUP BY; sum(a * b) is a contraction"},
    {"top_k", routing, 2, 2, "top_k(x, k) OVER (PARTITION BY ...)", "the k largest, largest first, along a new index k"},
    {"top_k_positions", routing, 2, 2, "top_k_positions(x, k) OVER (PARTITION BY ...)", "positions of the k largest"},
    {"zeros", other, 1, 64, "zeros(b, d, ...)", "a tensor of zeros with these indices"},
};
// clang-format on

FunctionSpec spec_of(const ops::Pointwise& row, const ops::Operator& op) {
  return {.name = row.word(),
          .kind = pointwise,
          .fewest = row.arity,
          .most = row.arity,
          .usage = row.usage,
          .summary = row.summary,
          .op = &op,
          .fold = row.arity == 1 ? row.meaning.in_double : nullptr};
}

// The functions above, and the named rows of ops/pointwise_rows.h.
struct Index {
  std::vector<FunctionSpec> specs{std::begin(kFunctions), std::end(kFunctions)};
  Symbols symbols;
  std::vector<std::string_view> names;

  Index() {
    const std::span<const ops::Pointwise> rows = ops::pointwise_rows();
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (!rows[i].usage.empty()) specs.push_back(spec_of(rows[i], ops::pointwise_operator(i)));
    std::ranges::sort(specs, {}, &FunctionSpec::name);
    for (const FunctionSpec& spec : specs) {
      symbols.intern(spec.name);
      names.push_back(spec.name);
    }
  }
};

const Index& index() {
  static const Index built;
  return built;
}

}  // namespace

std::span<const FunctionSpec> functions() { return index().specs; }
std::span<const std::string_view> function_names() { return index().names; }

const FunctionSpec* find_function(std::string_view name) {
  Symbol found = index().symbols.find(name);
  if (!found.valid()) found = index().symbols.find(lower(name));  // function names ignore case
  return found.valid() ? &index().specs[found.value] : nullptr;
}

}  // namespace weft::language
