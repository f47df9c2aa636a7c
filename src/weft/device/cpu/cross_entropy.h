// weft/device/cpu/cross_entropy.h -- how surprised rows of logits are by their labels, and the gradient.
//
//   loss[r]       = log(sum over c of exp(logits[r, c])) - logits[r, label[r]]
//   dlogits[r, c] = (softmax(logits[r])[c] - [c = label[r]]) * dloss[r]
//
// logits are rows of `classes` contiguous floats; a call works on rows [begin, end). A label outside
// 0 .. classes-1 marks a row to be ignored: its loss and its gradient are zero. Labels are i32 or i64.
#pragma once
#include <cstdint>

namespace weft::device::cpu {

template <class Label>
void cross_entropy(std::int64_t begin, std::int64_t end, std::int64_t classes, const float* logits,
                   const Label* labels, float* loss);

// dlogits may be the logits' own memory.
template <class Label>
void cross_entropy_gradient(std::int64_t begin, std::int64_t end, std::int64_t classes, const float* logits,
                            const Label* labels, const float* dloss, float* dlogits);

}  // namespace weft::device::cpu
