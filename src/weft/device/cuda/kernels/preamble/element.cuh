// preamble/element.cuh -- prelude.cuh and the type of an element.
#pragma once
#include "../prelude.cuh"

typedef weft_bf16 T;
