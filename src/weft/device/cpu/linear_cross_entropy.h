// weft/device/cpu/linear_cross_entropy.h -- fused linear layer and cross entropy, one tile of
// logits at a time.
//
// Runs on the calling thread; items are those of program/tasks/loss_tiles.h. Bitwise reproducible.
#pragma once
#include <cstdint>

#include "weft/device/cpu/cross_entropy.h"
#include "weft/program/tasks/loss_tiles.h"

namespace weft::device::cpu {

struct LinearLoss {
  program::LossTiles tiles;
  LabelWeights weights;
  const float *hidden, *words;     // [rows, width]; [classes, width] or [width, classes]
  const float* bias = nullptr;     // [classes], or null
  float *loss, *dhidden, *dwords;  // gradients are null if not wanted
  float* dbias = nullptr;
  float* room;
};

template <class Label>
void linear_cross_entropy(const LinearLoss& of, std::int64_t begin, std::int64_t end, const Label* labels);

}  // namespace weft::device::cpu
