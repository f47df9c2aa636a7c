// weft/device/cpu/cross_entropy.h -- cross entropy of rows of logits, and its gradient.
//
//   loss[r]       = log(sum over c of exp(logits[r, c])) - sure * logits[r, label[r]] - each * sum of logits[r]
//   dlogits[r, c] = (softmax(logits[r])[c] - sure * [c = label[r]] - each) * dloss[r]
//
// logits are rows of `classes` contiguous floats. A call works on rows [begin, end). A row with a
// label outside 0 .. classes-1 is ignored: its loss and gradient are zero. Labels are i32 or i64.
#pragma once
#include <cstdint>

namespace weft::device::cpu {

// Target weights of the label's class and of every class: 1 and 0 without label smoothing.
struct LabelWeights {
  float sure = 1, each = 0;
};

template <class Label>
void cross_entropy(std::int64_t begin, std::int64_t end, std::int64_t classes, const float* logits,
                   const Label* labels, float* loss, LabelWeights weights = {});

// dlogits may alias logits.
template <class Label>
void cross_entropy_gradient(std::int64_t begin, std::int64_t end, std::int64_t classes, const float* logits,
                            const Label* labels, const float* dloss, float* dlogits,
                            LabelWeights weights = {});

}  // namespace weft::device::cpu
