// preamble/prelude.cuh -- prelude.cuh comes before it.
#pragma once
#include "../prelude.cuh"
