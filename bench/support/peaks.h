// bench/support/peaks.h -- the best this machine does on one thread: what the roof of a roofline is made of.
#pragma once
#include <cstdint>

namespace weft::bench {

struct GemmPeaks {
  double weft = 0;      // flop/s of device::cpu::gemm
  double openblas = 0;  // 0 without it

  double best() const { return weft > openblas ? weft : openblas; }
};

// Of a product of three large square matrices.
GemmPeaks measure_gemm_peaks();

// Bytes a second of a[i] = b[i] + s * c[i] (McCalpin's STREAM triad) over three arrays of this many
// bytes together: small ones stay in a cache.
double measure_triad(std::int64_t bytes);

}  // namespace weft::bench
