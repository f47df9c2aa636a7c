// weft/device/cpu/openblas.h -- OpenBLAS, loaded when a product first needs it.
//
// As it is loaded it starts a thread a core, and these spin for a tenth of a second before they sleep: a
// command that multiplies nothing would pay for them too, and so would ranks that have just begun and share
// their cores. So it is not linked, and told to start none.
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

// Null where the machine has none, though the one that built this had.
const OpenBlas* openblas();

}  // namespace weft::device::cpu
#endif
