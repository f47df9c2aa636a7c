// weft/device/cpu/cross_entropy.h -- how surprised rows of logits are by their labels, and the gradient.
//
//   loss[r]       = log(sum over c of exp(logits[r, c])) - sure * logits[r, label[r]] - each * sum of logits[r]
//   dlogits[r, c] = (softmax(logits[r])[c] - sure * [c = label[r]] - each) * dloss[r]
//
// logits are rows of `classes` contiguous floats; a call works on rows [begin, end). A label outside
// 0 .. classes-1 marks a row to be ignored: its loss and its gradient are zero. Labels are i32 or i64.
#pragma once
#include <cstdint>

namespace weft::device::cpu {

// What a label's class wants, and every class: 1 and 0 where labels are not smoothed.
struct LabelWeights {
  float sure = 1, each = 0;
};

template <class Label>
void cross_entropy(std::int64_t begin, std::int64_t end, std::int64_t classes, const float* logits,
                   const Label* labels, float* loss, LabelWeights weights = {});

// dlogits may be the logits' own memory.
template <class Label>
void cross_entropy_gradient(std::int64_t begin, std::int64_t end, std::int64_t classes, const float* logits,
                            const Label* labels, const float* dloss, float* dlogits,
                            LabelWeights weights = {});

}  // namespace weft::device::cpu
