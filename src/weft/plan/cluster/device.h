// weft/plan/cluster/device.h -- the capabilities of one processor, from its datasheet or measured.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "weft/base/hash.h"

namespace weft::cluster {

class Rates;

// The number formats for which a processor has separate peak rates.
enum class Precision : std::uint8_t { f64, f32, tf32, f16, bf16, f8, i8 };
constexpr std::size_t kPrecisions = 7;

std::string_view name(Precision precision);

// Kernels whose rate differs from that of matrix products in bf16 (or the precision stated for
// those).
enum class KernelKind : std::uint8_t { attention, attention_gradient, convolution, convolution_gradient };
constexpr std::size_t kKernelKinds = 4;

std::string_view name(KernelKind kind);

struct Device {
  std::string name;
  std::array<double, kPrecisions> flops_per_second{};  // 0: not stated
  double memory_bytes = 0;
  double memory_bytes_per_second = 0;
  double launch_seconds = 0;  // from issuing a kernel to its first instruction
  // The fraction of these rates that large matrix products and memory-bound loops reach; 1 for
  // measured rates.
  double reach = 0.85;
  // Half of the 80 % interval of steps predicted with these rates, as a share, beside the software's own; 0: not known.
  double step_error = 0;
  std::array<double, kKernelKinds> kernels{};  // measured FLOP/s; 0: not measured
  // Fitted to tables of its measured kernels and collectives (rates.h), if there are any.
  std::shared_ptr<const Rates> rates = nullptr;
  Digest rates_digest = {};  // of their text

  double rate(KernelKind kind) const { return kernels[static_cast<std::size_t>(kind)]; }
  double rate(Precision precision) const { return flops_per_second[static_cast<std::size_t>(precision)]; }
};

}  // namespace weft::cluster
