// weft/device/cpu/openblas.h -- OpenBLAS, loaded when a product first needs it.
//
// On load it starts one thread per core, and these spin for 0.1 s before they sleep. Commands
// without products would pay for that, and so would new ranks that share cores. So OpenBLAS is not
// linked, and it is loaded with threads disabled.
#pragma once
#ifdef WEFT_HAS_OPENBLAS
#include <cblas.h>

namespace weft::device::cpu {

struct OpenBlas {
  decltype(&cblas_sgemm) sgemm;
  decltype(&cblas_dgemm) dgemm;
  decltype(&cblas_sgemv) sgemv;
  decltype(&cblas_dgemv) dgemv;
  decltype(&openblas_set_num_threads) set_num_threads;
};

// Null if OpenBLAS is not installed, although the build machine had it.
const OpenBlas* openblas();

}  // namespace weft::device::cpu
#endif
