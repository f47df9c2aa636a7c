// preamble/cuda.cuh -- the subset of CUDA that kernels use, for editors: NVRTC has it built in and
// uses no headers.
//
// Files in this folder stand in for the definitions that the program puts before a kernel; see
// kernel_source.h.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __grid_constant__

struct uint3 {
  unsigned x, y, z;
};
struct uint4 {
  unsigned x, y, z, w;
};
struct float4 {
  float x, y, z, w;
};
extern const __device__ uint3 threadIdx, blockIdx, blockDim, gridDim;

__device__ uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w);
__device__ float4 make_float4(float x, float y, float z, float w);
__device__ void __syncthreads();
__device__ void __syncwarp(unsigned mask = 0xffffffffu);
__device__ void __threadfence_system();
__device__ unsigned __umulhi(unsigned a, unsigned b);
__device__ float __int_as_float(int bits);
__device__ float __uint_as_float(unsigned bits);
__device__ unsigned long long __cvta_generic_to_shared(const void* pointer);
template <class T>
__device__ T __shfl_xor_sync(unsigned mask, T value, int lane);
template <class T>
__device__ T __shfl_down_sync(unsigned mask, T value, int lanes);
template <class T>
__device__ T min(T a, T b);
template <class T>
__device__ T max(T a, T b);
__device__ unsigned min(unsigned a, unsigned b);
__device__ int min(int a, int b);
__device__ float expf(float), logf(float), sqrtf(float), fabsf(float), erff(float), tanhf(float),
    fmaxf(float, float);
