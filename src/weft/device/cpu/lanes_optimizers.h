// weft/device/cpu/lanes_optimizers.h -- optimizer steps, by the formulas in lanes.h.
#pragma once
#include <cstdint>

#include "weft/device/cpu/lanes.h"
#include "weft/device/cpu/lanes_loops.h"

namespace weft::device::cpu::WEFT_LANES {

[[gnu::flatten]] inline void sgd(std::int64_t n, float lr, const float* weight, const float* gradient,
                                 float* next_weight) {
  each(n, [=](std::int64_t i, auto lanes) {
    store(next_weight + i, load(weight + i, lanes, 0) - lr * load(gradient + i, lanes, 0), lanes);
  });
}

[[gnu::flatten]] inline void momentum(std::int64_t n, const MomentumStep& step, const float* weight,
                                      const float* gradient, const float* velocity, float* next_weight,
                                      float* next_velocity) {
  each(n, [=, lr = step.lr, mu = step.momentum](std::int64_t i, auto lanes) {
    const Vector m = mu * load(velocity + i, lanes, 0) + load(gradient + i, lanes, 0);
    store(next_weight + i, load(weight + i, lanes, 0) - lr * m, lanes);
    store(next_velocity + i, m, lanes);
  });
}

[[gnu::flatten]] inline void adam(std::int64_t n, const AdamStep& of, const float* weight,
                                  const float* gradient, const float* first, const float* second,
                                  float* next_weight, float* next_first, float* next_second) {
  const AdamStep step = of;  // a copy, which cannot alias the stores
  const float unbiased1 = 1 / step.correction1, unbiased2 = 1 / step.correction2;
  each(n, [=](std::int64_t i, auto lanes) {
    const Vector w = load(weight + i, lanes, 0), g = load(gradient + i, lanes, 0);
    const Vector m = step.beta1 * load(first + i, lanes, 0) + (1 - step.beta1) * g;
    const Vector v = step.beta2 * load(second + i, lanes, 0) + (1 - step.beta2) * (g * g);
    const Vector update = (m * unbiased1) / (square_root(v * unbiased2) + step.epsilon);
    store(next_weight + i, w - step.lr * (update + step.weight_decay * w), lanes);
    store(next_first + i, m, lanes);
    store(next_second + i, v, lanes);
  });
}

}  // namespace weft::device::cpu::WEFT_LANES
