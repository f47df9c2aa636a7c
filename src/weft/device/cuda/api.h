// weft/device/cuda/api.h -- the functions used of NVIDIA's libraries, which are loaded on first
// use.
//
//   libcuda     the driver: memory, streams, events, launches         part of the driver
//   libnvrtc    compiles Weft's kernels                                part of the toolkit
//   libcublas   matrix products; libcublasLt: by a chosen algorithm    part of the toolkit
//   libcudnn    convolutions, if installed                             a separate package
//
// The build needs none of them. Without them everything but the GPU works, and errors name what is
// missing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "weft/base/result.h"

namespace weft::device::cuda {

// Handle and code types of the libraries' ABIs.
using DevicePointer = unsigned long long;
using Handle = struct Opaque*;  // contexts, modules, functions, streams, events, programs, cuBLAS itself
using Code = int;               // 0: success

// A memory location (CUmemLocation): a device by number, or the host by NUMA node.
struct MemoryPlace {
  int kind = 1, number = 0;
};
inline constexpr int kOnDevice = 1, kOnHost = 3;
struct MemoryKind {
  int type = 1, shared_by = 0;  // pinned; not shared
  MemoryPlace place;
  void* other = nullptr;
  unsigned char flags[8] = {};
};
struct MemoryAccess {
  MemoryPlace place;
  int rights = 3;  // read and write
};

// A TMA descriptor (CUtensorMap): a tensor's address and layout, and the box that a load fetches.
struct alignas(64) TensorMap {
  unsigned char bytes[128] = {};
};

struct Driver {
  Code (*init)(unsigned flags);
  Code (*driver_version)(int* version);
  Code (*error_text)(Code code, const char** text);
  Code (*device_count)(int* count);
  Code (*device)(int* device, int ordinal);
  Code (*device_name)(char* name, int length, int device);
  Code (*device_attribute)(int* value, int attribute, int device);
  Code (*retain_context)(Handle* context, int device);
  Code (*release_context)(int device);
  Code (*set_context)(Handle context);
  Code (*memory_info)(std::size_t* free, std::size_t* total);
  Code (*allocate)(DevicePointer* pointer, std::size_t bytes);
  Code (*free)(DevicePointer pointer);
  Code (*allocate_host)(void** pointer, std::size_t bytes, unsigned flags);
  Code (*free_host)(void* pointer);
  // Virtual memory management: maps memory into a reserved address range, so that part of it can be
  // host memory.
  Code (*granularity)(std::size_t* bytes, const MemoryKind* kind, int option);
  Code (*reserve)(DevicePointer* pointer, std::size_t bytes, std::size_t alignment, DevicePointer at,
                  unsigned long long flags);
  Code (*unreserve)(DevicePointer pointer, std::size_t bytes);
  Code (*create_memory)(unsigned long long* memory, std::size_t bytes, const MemoryKind* kind,
                        unsigned long long flags);
  Code (*release_memory)(unsigned long long memory);
  Code (*map)(DevicePointer pointer, std::size_t bytes, std::size_t offset, unsigned long long memory,
              unsigned long long flags);
  Code (*unmap)(DevicePointer pointer, std::size_t bytes);
  Code (*set_access)(DevicePointer pointer, std::size_t bytes, const MemoryAccess* access, std::size_t count);
  Code (*fill)(DevicePointer to, unsigned char value, std::size_t bytes, Handle stream);
  Code (*copy_in)(DevicePointer to, const void* from, std::size_t bytes, Handle stream);
  Code (*copy_out)(void* to, DevicePointer from, std::size_t bytes, Handle stream);
  Code (*copy)(DevicePointer to, DevicePointer from, std::size_t bytes, Handle stream);
  Code (*create_stream)(Handle* stream, unsigned flags, int priority);
  Code (*priorities)(int* least, int* greatest);  // range of stream priorities: lower numbers have priority
  Code (*destroy_stream)(Handle stream);
  Code (*synchronize)(Handle stream);
  Code (*stream_wait)(Handle stream, Handle event, unsigned flags);
  Code (*create_event)(Handle* event, unsigned flags);
  Code (*destroy_event)(Handle event);
  Code (*record)(Handle event, Handle stream);
  Code (*record_with_flags)(Handle event, Handle stream, unsigned flags);
  Code (*event_query)(Handle event);
  Code (*event_synchronize)(Handle event);
  Code (*event_elapsed)(float* milliseconds, Handle begin, Handle end);
  Code (*begin_capture)(Handle stream, int mode);
  Code (*end_capture)(Handle stream, Handle* graph);
  Code (*instantiate)(Handle* executable, Handle graph, unsigned long long flags);
  Code (*destroy_graph)(Handle graph);
  Code (*destroy_executable)(Handle executable);
  Code (*launch_graph)(Handle executable, Handle stream);
  Code (*load_module)(Handle* module, const void* image);
  Code (*unload_module)(Handle module);
  Code (*find_function)(Handle* function, Handle module, const char* name);
  Code (*set_attribute)(Handle function, int attribute, int value);
  Code (*launch)(Handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                 unsigned block_y, unsigned block_z, unsigned shared_bytes, Handle stream, void** parameters,
                 void** extra);
  // Sizes and boxes are per dimension, fastest first; strides are in bytes, from the second
  // dimension on.
  Code (*describe_tensor)(TensorMap* map, int type, unsigned dimensions, void* at, const std::uint64_t* sizes,
                          const std::uint64_t* strides, const std::uint32_t* box, const std::uint32_t* steps,
                          int interleaved, int permuted, int ahead, int outside);
  // A cooperative launch: all blocks are resident at the same time, or the launch fails.
  Code (*launch_cooperative)(Handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                             unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                             Handle stream, void** parameters);
};

struct Compiler {
  Code (*version)(int* major, int* minor);
  const char* (*error_text)(Code code);
  Code (*create)(Handle* program, const char* source, const char* name, int headers, const char* const* texts,
                 const char* const* names);
  Code (*destroy)(Handle* program);
  Code (*compile)(Handle program, int options, const char* const* texts);
  Code (*log_size)(Handle program, std::size_t* bytes);
  Code (*log)(Handle program, char* text);
  Code (*image_size)(Handle program, std::size_t* bytes);
  Code (*image)(Handle program, char* image);
};

struct Blas {
  Code (*create)(Handle* blas);
  Code (*destroy)(Handle blas);
  Code (*set_stream)(Handle blas, Handle stream);
  Code (*set_workspace)(Handle blas, void* memory, std::size_t bytes);
  Code (*set_sm_count)(Handle blas, int most);  // limits the SMs that a product uses
  Code (*multiply)(Handle blas, int transpose_a, int transpose_b, int m, int n, int k, const void* alpha,
                   const void* a, int a_type, int lda, long long a_stride, const void* b, int b_type, int ldb,
                   long long b_stride, const void* beta, void* c, int c_type, int ldc, long long c_stride,
                   int batch, int compute_type, int algorithm);
};

// Products with an algorithm chosen by the caller. Products, matrices and preferences are described
// by handles.
struct BlasLt {
  Code (*create)(Handle* blas);
  Code (*destroy)(Handle blas);
  std::size_t (*version)();
  Code (*create_product)(Handle* product, int compute_type, int scale_type);
  Code (*destroy_product)(Handle product);
  Code (*set_product)(Handle product, int attribute, const void* value, std::size_t bytes);
  Code (*create_matrix)(Handle* matrix, int type, std::uint64_t rows, std::uint64_t columns, std::int64_t ld);
  Code (*destroy_matrix)(Handle matrix);
  Code (*set_matrix)(Handle matrix, int attribute, const void* value, std::size_t bytes);
  Code (*create_preference)(Handle* wishes);
  Code (*destroy_preference)(Handle wishes);
  Code (*set_preference)(Handle wishes, int attribute, const void* value, std::size_t bytes);
  Code (*rank)(Handle blas, Handle product, Handle a, Handle b, Handle c, Handle d, Handle wishes, int asked,
               void* candidates, int* given);
  Code (*check)(Handle blas, Handle product, Handle a, Handle b, Handle c, Handle d, const void* algorithm,
                void* candidate);
  Code (*multiply)(Handle blas, Handle product, const void* alpha, const void* a, Handle a_matrix,
                   const void* b, Handle b_matrix, const void* beta, const void* c, Handle c_matrix, void* d,
                   Handle d_matrix, const void* algorithm, void* workspace, std::size_t bytes, Handle stream);
};

// Shapes are described by handles: a tensor, a filter, a convolution.
struct Dnn {
  std::size_t (*version)();
  Code (*create)(Handle* dnn);
  Code (*destroy)(Handle dnn);
  Code (*set_stream)(Handle dnn, Handle stream);
  Code (*create_tensor)(Handle* tensor);
  Code (*destroy_tensor)(Handle tensor);
  Code (*set_tensor)(Handle tensor, int format, int type, int n, int c, int h, int w);
  Code (*create_filter)(Handle* filter);
  Code (*destroy_filter)(Handle filter);
  Code (*set_filter)(Handle filter, int type, int format, int k, int c, int h, int w);
  Code (*create_convolution)(Handle* convolution);
  Code (*destroy_convolution)(Handle convolution);
  Code (*set_convolution)(Handle convolution, int pad_h, int pad_w, int stride_h, int stride_w,
                          int dilation_h, int dilation_w, int mode, int compute_type);
  Code (*set_groups)(Handle convolution, int groups);
  Code (*set_math)(Handle convolution, int math);
  // One each for the forward pass, the input gradient and the filter gradient, in this order. The
  // first two descriptors are inputs, the third is the output.
  using Rank = Code (*)(Handle dnn, Handle a, Handle b, Handle convolution, Handle c, int asked, int* given,
                        void* results);
  using Workspace = Code (*)(Handle dnn, Handle a, Handle b, Handle convolution, Handle c, int algorithm,
                             std::size_t* bytes);
  Rank rank[3];
  Workspace workspace[3];
  Code (*forward)(Handle dnn, const void* one, Handle x, const void* x_at, Handle w, const void* w_at,
                  Handle convolution, int algorithm, void* workspace, std::size_t bytes, const void* zero,
                  Handle y, void* y_at);
  Code (*input_gradient)(Handle dnn, const void* one, Handle w, const void* w_at, Handle dy,
                         const void* dy_at, Handle convolution, int algorithm, void* workspace,
                         std::size_t bytes, const void* zero, Handle dx, void* dx_at);
  Code (*filter_gradient)(Handle dnn, const void* one, Handle x, const void* x_at, Handle dy,
                          const void* dy_at, Handle convolution, int algorithm, void* workspace,
                          std::size_t bytes, const void* zero, Handle dw, void* dw_at);
};

// Loaded once per process. On failure the error names what is missing and which package has it.
Result<const Driver*> driver();
Result<const Compiler*> compiler();
Result<const Blas*> blas();
Result<const BlasLt*> blas_lt();
Result<const Dnn*> dnn();

// "the GPU failed to WHAT: out of memory (code 2)"; ok if the code is 0.
Status check(Code code, std::string_view what);
// Whether it is an error of an earlier kernel launch, which all later calls return too.
inline bool is_kernel_error(Code code) { return code >= 700 && code < 720; }
// Offset that separates cuBLAS's codes from the driver's.
inline constexpr Code kBlasCodeOffset = 10'000;
inline Code blas_code(Code code) { return code == 0 ? 0 : kBlasCodeOffset + code; }

}  // namespace weft::device::cuda
