#include "support/peaks.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "support/measure.h"
#include "support/openblas.h"
#include "weft/device/cpu/blas.h"

namespace weft::bench {
namespace {

// Out of line, else the compiler would remove stores that nothing reads.
[[gnu::noinline]] void triad(float* __restrict a, const float* __restrict b, const float* __restrict c,
                             float factor, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) a[i] = b[i] + factor * c[i];
}

}  // namespace

GemmPeaks measure_gemm_peaks() {
  constexpr std::int64_t kSide = 1536;
  constexpr double kFlops = 2.0 * kSide * kSide * kSide;
  const std::vector<float> a(kSide * kSide, 0.5F), b(kSide * kSide, 0.25F);
  std::vector<float> c(kSide * kSide);

  const auto weft = [&] {
    using enum device::cpu::Transpose;
    device::cpu::gemm(no, no, kSide, kSide, kSide, 1.0F, a.data(), kSide, b.data(), kSide, 0.0F, c.data(),
                      kSide);
  };
  const auto openblas = [&] {
    openblas_gemm(1, false, false, kSide, kSide, kSide, a.data(), b.data(), c.data());
  };
  std::vector<Side> sides = {{[&] { return wall_seconds_of(weft); }}};
  if (has_openblas()) sides.push_back({[&] { return wall_seconds_of(openblas); }});
  const std::vector<Times> times = take_turns(sides, {.wanted = 5, .most = 15});
  return {kFlops / times[0].processor, times.size() > 1 ? kFlops / times[1].processor : 0};
}

double measure_triad(std::int64_t bytes) {
  constexpr double kMoved = 256e6;  // per turn: long enough for the clock
  const std::size_t count = std::max<std::size_t>(static_cast<std::size_t>(bytes) / 12, 256);
  const int rounds = static_cast<int>(std::max(1.0, kMoved / (12.0 * static_cast<double>(count))));
  std::vector<float> a(count), b(count, 1.0F), c(count, 2.0F);
  const Side side{[&] {
    return wall_seconds_of([&] {
      for (int i = 0; i < rounds; ++i) triad(a.data(), b.data(), c.data(), 0.5F, count);
    });
  }};
  const double seconds = take_turns({&side, 1}, {.wanted = 7, .most = 21})[0].processor;
  return 12.0 * static_cast<double>(count) * rounds / seconds;
}

}  // namespace weft::bench
