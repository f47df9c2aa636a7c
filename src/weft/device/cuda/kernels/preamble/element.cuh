// preamble/element.cuh -- prelude.cuh and an example element type.
#pragma once
#include "../prelude.cuh"

typedef weft_bf16 T;
