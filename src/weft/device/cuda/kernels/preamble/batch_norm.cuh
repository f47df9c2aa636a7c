// preamble/batch_norm.cuh -- call_batch_norm.cpp defines these.
#pragma once
#include "../prelude.cuh"

typedef weft_bf16 T;                                                               // of x and y
typedef float S;                                                                   // of the statistics
typedef float R;                                                                   // of 1 / deviation
constexpr unsigned kInner = 49u, kPoints = 1568u, kChannels = 512u, kEach = 784u;  // points in packs
constexpr int kParts = 2, kPack = 8;
constexpr bool kTrains = true;
constexpr float kEpsilon = 1e-5f, kKept = 0.9f, kNew = 0.1f, kUnbiased = 1.0001f;
