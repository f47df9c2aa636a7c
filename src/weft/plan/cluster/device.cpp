#include "weft/plan/cluster/device.h"

namespace weft::cluster {

std::string_view name(Precision precision) {
  constexpr std::array<std::string_view, kPrecisions> kNames = {"f64",  "f32", "tf32", "f16",
                                                                "bf16", "f8",  "i8"};
  return kNames[static_cast<std::size_t>(precision)];
}

std::string_view name(KernelKind kind) {
  constexpr std::array<std::string_view, kKernelKinds> kNames = {"attention", "attention_gradient",
                                                                 "convolution", "convolution_gradient"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace weft::cluster
