// preamble/updates.cuh -- update_kernel.cpp defines these.
#pragma once
#include "../prelude.cuh"

constexpr int kThreads = 256, kPack = 4, kPacks = 2, kMostTensors = 32;
