#include "weft/device/cpu/cross_entropy.h"

#include <algorithm>

#include "weft/device/cpu/lanes.h"

namespace weft::device::cpu {

template <class Label>
void cross_entropy(std::int64_t begin, std::int64_t end, std::int64_t classes, const float* logits,
                   const Label* labels, float* loss, LabelWeights weights) {
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t label = labels[row];
    const float* x = logits + row * classes;
    float largest = 0;
    float surprise = 0;
    if (label >= 0 && label < classes) {
      surprise = log_sum_exp_row(x, classes, largest) - weights.sure * x[label];
      if (weights.each > 0) surprise -= weights.each * sum_lanes(x, classes);
    }
    loss[row] = surprise;
  }
}

template <class Label>
void cross_entropy_gradient(std::int64_t begin, std::int64_t end, std::int64_t classes, const float* logits,
                            const Label* labels, const float* dloss, float* dlogits, LabelWeights weights) {
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t label = labels[row];
    float* dx = dlogits + row * classes;
    if (label < 0 || label >= classes) {
      std::fill_n(dx, classes, 0.0f);
      continue;
    }
    softmax_row(logits + row * classes, dx, classes);
    const float factor = dloss[row];
    for (std::int64_t c = 0; c < classes; ++c) dx[c] = (dx[c] - weights.each) * factor;
    dx[label] -= weights.sure * factor;
  }
}

template void cross_entropy(std::int64_t, std::int64_t, std::int64_t, const float*, const std::int32_t*,
                            float*, LabelWeights);
template void cross_entropy(std::int64_t, std::int64_t, std::int64_t, const float*, const std::int64_t*,
                            float*, LabelWeights);
template void cross_entropy_gradient(std::int64_t, std::int64_t, std::int64_t, const float*,
                                     const std::int32_t*, const float*, float*, LabelWeights);
template void cross_entropy_gradient(std::int64_t, std::int64_t, std::int64_t, const float*,
                                     const std::int64_t*, const float*, float*, LabelWeights);

}  // namespace weft::device::cpu
