#include <fmt/format.h>

#include "weft/device/cuda/call.h"
#include "weft/device/cuda/expression.h"
#include "weft/ops/operators.h"

namespace weft::device::cuda {

// As device/cpu/lanes_optimizers.h computes them. The step and the schedule's factor are read where they lie.
Made make_optimizer(const Call& call) {
  const plan::NodeView& node = call.node;
  const plan::Operator* const op = &node.op();
  const bool is_adam = op == &ops::adam() || op == &ops::adamw();
  if (!is_adam && op != &ops::sgd() && op != &ops::momentum()) return {nullptr};
  const std::size_t last = is_adam ? 5 : op == &ops::momentum() ? 3 : 2;
  std::string body,
      before = fmt::format(
          "    const float lr = float({:.17g}{});\n", node.real(0),
          call.in.size() > last ? fmt::format(" * double({}[0])", static_cast<char>('a' + last)) : "");
  if (op == &ops::sgd()) {
    body += "    r0[i] = a[i] - lr * b[i];\n";
  } else if (op == &ops::momentum()) {
    body += fmt::format("    const float m = {} * c[i] + b[i];\n    r0[i] = a[i] - lr * m;\n    r1[i] = m;\n",
                        number(node.real(1)));
  } else {
    const std::string beta1 = number(node.real(1)), beta2 = number(node.real(2));
    before += fmt::format(
        "    const double t = double(e[0] + 1);\n"
        "    const float unbiased1 = 1.0f / float(1.0 - pow(double({0}), t));\n"
        "    const float unbiased2 = 1.0f / float(1.0 - pow(double({1}), t));\n",
        beta1, beta2);
    body += fmt::format(
        "    const float w = a[i], g = b[i];\n"
        "    const float m = {0} * c[i] + (1.0f - {0}) * g;\n"
        "    const float v = {1} * d[i] + (1.0f - {1}) * (g * g);\n"
        "    const float update = (m * unbiased1) / (sqrtf(v * unbiased2) + {2});\n"
        "    r0[i] = w - lr * (update + {3} * w);\n    r1[i] = m;\n    r2[i] = v;\n",
        beta1, beta2, number(node.real(3)), number(op == &ops::adamw() ? node.real(4) : 0));
  }
  return elements_kernel(call, over_elements(call, body, before), node.result_type(0).elements());
}

}  // namespace weft::device::cuda
