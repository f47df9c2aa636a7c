// signal.cuh -- writes a number that the host polls while kernels run.
#pragma once
#include "preamble/cuda.cuh"

extern "C" __global__ void weft_signal(volatile unsigned long long* word, unsigned long long number) {
  *word = number;
  __threadfence_system();
}
