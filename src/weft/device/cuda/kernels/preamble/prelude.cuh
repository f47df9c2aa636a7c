// preamble/prelude.cuh -- for kernels that follow prelude.cuh.
#pragma once
#include "../prelude.cuh"
