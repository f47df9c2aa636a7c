// bench/support/peaks.h -- peak rates of this machine on one thread, for the roofline.
#pragma once
#include <cstdint>

namespace weft::bench {

struct GemmPeaks {
  double weft = 0;      // flop/s of device::cpu::gemm
  double openblas = 0;  // 0 without it

  double best() const { return weft > openblas ? weft : openblas; }
};

// Measured with products of three large square matrices.
GemmPeaks measure_gemm_peaks();

// Bytes per second of a[i] = b[i] + s * c[i] (McCalpin's STREAM triad) over three arrays with this
// many bytes in total. Small ones stay in a cache.
double measure_triad(std::int64_t bytes);

}  // namespace weft::bench
