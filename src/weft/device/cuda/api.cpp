#include "weft/device/cuda/api.h"

#include <dlfcn.h>

#include <array>
#include <initializer_list>

#include <fmt/format.h>

namespace weft::device::cuda {
namespace {

void* open_any(std::initializer_list<const char*> names) {
  for (const char* const name : names)
    if (void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  for (const char* const name : names)
    if (void* const library =
            dlopen(fmt::format("/usr/local/cuda/lib64/{}", name).c_str(), RTLD_NOW | RTLD_LOCAL))
      return library;
  return nullptr;
}

// A library function to look up, and where to store its address.
struct Wanted {
  const char* name;
  void** slot;
};
template <class Function>
void** slot(Function& function) {
  return reinterpret_cast<void**>(&function);
}

struct Library {
  std::string_view called;  // its name in error messages
  std::initializer_list<const char*> files;
  std::string_view without, hint;  // error message and hint if it is missing
};

Status load(const Library& from, std::initializer_list<Wanted> all) {
  void* const library = open_any(from.files);
  if (library == nullptr) return environment_error(std::string(from.without), std::string(from.hint));
  for (const Wanted& wanted : all) {
    *wanted.slot = dlsym(library, wanted.name);
    if (*wanted.slot == nullptr)
      return environment_error(
          fmt::format("{} of this machine is too old: it has no {}", from.called, wanted.name),
          "CUDA 12 or later is needed");
  }
  return {};
}

constexpr std::string_view kInToolkit = "install the CUDA toolkit, or set LD_LIBRARY_PATH to its folder";

Result<Driver> load_driver() {
  Driver driver;
  const std::initializer_list<Wanted> wanted = {
      {"cuInit", slot(driver.init)},
      {"cuDriverGetVersion", slot(driver.driver_version)},
      {"cuGetErrorString", slot(driver.error_text)},
      {"cuDeviceGetCount", slot(driver.device_count)},
      {"cuDeviceGet", slot(driver.device)},
      {"cuDeviceGetName", slot(driver.device_name)},
      {"cuDeviceGetAttribute", slot(driver.device_attribute)},
      {"cuDevicePrimaryCtxRetain", slot(driver.retain_context)},
      {"cuDevicePrimaryCtxRelease_v2", slot(driver.release_context)},
      {"cuCtxSetCurrent", slot(driver.set_context)},
      {"cuMemGetInfo_v2", slot(driver.memory_info)},
      {"cuMemAlloc_v2", slot(driver.allocate)},
      {"cuMemFree_v2", slot(driver.free)},
      {"cuMemHostAlloc", slot(driver.allocate_host)},
      {"cuMemFreeHost", slot(driver.free_host)},
      {"cuMemGetAllocationGranularity", slot(driver.granularity)},
      {"cuMemAddressReserve", slot(driver.reserve)},
      {"cuMemAddressFree", slot(driver.unreserve)},
      {"cuMemCreate", slot(driver.create_memory)},
      {"cuMemRelease", slot(driver.release_memory)},
      {"cuMemMap", slot(driver.map)},
      {"cuMemUnmap", slot(driver.unmap)},
      {"cuMemSetAccess", slot(driver.set_access)},
      {"cuMemsetD8Async", slot(driver.fill)},
      {"cuMemcpyHtoDAsync_v2", slot(driver.copy_in)},
      {"cuMemcpyDtoHAsync_v2", slot(driver.copy_out)},
      {"cuMemcpyDtoDAsync_v2", slot(driver.copy)},
      {"cuStreamCreateWithPriority", slot(driver.create_stream)},
      {"cuCtxGetStreamPriorityRange", slot(driver.priorities)},
      {"cuStreamDestroy_v2", slot(driver.destroy_stream)},
      {"cuStreamSynchronize", slot(driver.synchronize)},
      {"cuStreamWaitEvent", slot(driver.stream_wait)},
      {"cuEventCreate", slot(driver.create_event)},
      {"cuEventDestroy_v2", slot(driver.destroy_event)},
      {"cuEventRecord", slot(driver.record)},
      {"cuEventRecordWithFlags", slot(driver.record_with_flags)},
      {"cuEventQuery", slot(driver.event_query)},
      {"cuEventSynchronize", slot(driver.event_synchronize)},
      {"cuEventElapsedTime", slot(driver.event_elapsed)},
      {"cuStreamBeginCapture_v2", slot(driver.begin_capture)},
      {"cuStreamEndCapture", slot(driver.end_capture)},
      {"cuGraphInstantiateWithFlags", slot(driver.instantiate)},
      {"cuGraphDestroy", slot(driver.destroy_graph)},
      {"cuGraphExecDestroy", slot(driver.destroy_executable)},
      {"cuGraphLaunch", slot(driver.launch_graph)},
      {"cuModuleLoadData", slot(driver.load_module)},
      {"cuModuleUnload", slot(driver.unload_module)},
      {"cuModuleGetFunction", slot(driver.find_function)},
      {"cuFuncSetAttribute", slot(driver.set_attribute)},
      {"cuLaunchKernel", slot(driver.launch)},
      {"cuLaunchCooperativeKernel", slot(driver.launch_cooperative)},
      {"cuTensorMapEncodeTiled", slot(driver.describe_tensor)},
  };
  WEFT_TRY_STATUS(load({"the NVIDIA driver",
                        {"libcuda.so.1"},
                        "this machine has no NVIDIA driver: libcuda.so.1 not found",
                        "leave out ON GPU to run on the CPU"},
                       wanted));
  if (const Code code = driver.init(0); code != 0) {
    const char* text = nullptr;
    driver.error_text(code, &text);
    return environment_error(fmt::format("the NVIDIA driver failed to initialize: {} (code {})",
                                         text ? text : "no reason given", code),
                             "run nvidia-smi for details, or leave out ON GPU to run on the CPU");
  }
  return driver;
}

Result<Compiler> load_compiler() {
  Compiler compiler;
  const std::initializer_list<Wanted> wanted = {
      {"nvrtcVersion", slot(compiler.version)},        {"nvrtcGetErrorString", slot(compiler.error_text)},
      {"nvrtcCreateProgram", slot(compiler.create)},   {"nvrtcDestroyProgram", slot(compiler.destroy)},
      {"nvrtcCompileProgram", slot(compiler.compile)}, {"nvrtcGetProgramLogSize", slot(compiler.log_size)},
      {"nvrtcGetProgramLog", slot(compiler.log)},      {"nvrtcGetCUBINSize", slot(compiler.image_size)},
      {"nvrtcGetCUBIN", slot(compiler.image)},
  };
  WEFT_TRY_STATUS(load({"libnvrtc",
                        {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"},
                        "cannot compile GPU kernels: libnvrtc not found",
                        kInToolkit},
                       wanted));
  return compiler;
}

Result<Blas> load_blas() {
  Blas blas;
  const std::initializer_list<Wanted> wanted = {
      {"cublasCreate_v2", slot(blas.create)},
      {"cublasDestroy_v2", slot(blas.destroy)},
      {"cublasSetStream_v2", slot(blas.set_stream)},
      {"cublasSetWorkspace_v2", slot(blas.set_workspace)},
      {"cublasSetSmCountTarget", slot(blas.set_sm_count)},
      {"cublasGemmStridedBatchedEx", slot(blas.multiply)},
  };
  WEFT_TRY_STATUS(load({"libcublas",
                        {"libcublas.so.13", "libcublas.so.12", "libcublas.so"},
                        "cannot multiply matrices on the GPU: libcublas not found",
                        kInToolkit},
                       wanted));
  return blas;
}

Result<BlasLt> load_blas_lt() {
  BlasLt blas;
  const std::initializer_list<Wanted> wanted = {
      {"cublasLtCreate", slot(blas.create)},
      {"cublasLtDestroy", slot(blas.destroy)},
      {"cublasLtGetVersion", slot(blas.version)},
      {"cublasLtMatmulDescCreate", slot(blas.create_product)},
      {"cublasLtMatmulDescDestroy", slot(blas.destroy_product)},
      {"cublasLtMatmulDescSetAttribute", slot(blas.set_product)},
      {"cublasLtMatrixLayoutCreate", slot(blas.create_matrix)},
      {"cublasLtMatrixLayoutDestroy", slot(blas.destroy_matrix)},
      {"cublasLtMatrixLayoutSetAttribute", slot(blas.set_matrix)},
      {"cublasLtMatmulPreferenceCreate", slot(blas.create_preference)},
      {"cublasLtMatmulPreferenceDestroy", slot(blas.destroy_preference)},
      {"cublasLtMatmulPreferenceSetAttribute", slot(blas.set_preference)},
      {"cublasLtMatmulAlgoGetHeuristic", slot(blas.rank)},
      {"cublasLtMatmulAlgoCheck", slot(blas.check)},
      {"cublasLtMatmul", slot(blas.multiply)},
  };
  WEFT_TRY_STATUS(load({"libcublasLt",
                        {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"},
                        "cannot choose algorithms for matrix products: libcublasLt not found",
                        kInToolkit},
                       wanted));
  return blas;
}

Result<Dnn> load_dnn() {
  Dnn dnn;
  const std::initializer_list<Wanted> wanted = {
      {"cudnnGetVersion", slot(dnn.version)},
      {"cudnnCreate", slot(dnn.create)},
      {"cudnnDestroy", slot(dnn.destroy)},
      {"cudnnSetStream", slot(dnn.set_stream)},
      {"cudnnCreateTensorDescriptor", slot(dnn.create_tensor)},
      {"cudnnDestroyTensorDescriptor", slot(dnn.destroy_tensor)},
      {"cudnnSetTensor4dDescriptor", slot(dnn.set_tensor)},
      {"cudnnCreateFilterDescriptor", slot(dnn.create_filter)},
      {"cudnnDestroyFilterDescriptor", slot(dnn.destroy_filter)},
      {"cudnnSetFilter4dDescriptor", slot(dnn.set_filter)},
      {"cudnnCreateConvolutionDescriptor", slot(dnn.create_convolution)},
      {"cudnnDestroyConvolutionDescriptor", slot(dnn.destroy_convolution)},
      {"cudnnSetConvolution2dDescriptor", slot(dnn.set_convolution)},
      {"cudnnSetConvolutionGroupCount", slot(dnn.set_groups)},
      {"cudnnSetConvolutionMathType", slot(dnn.set_math)},
      {"cudnnGetConvolutionForwardAlgorithm_v7", slot(dnn.rank[0])},
      {"cudnnGetConvolutionBackwardDataAlgorithm_v7", slot(dnn.rank[1])},
      {"cudnnGetConvolutionBackwardFilterAlgorithm_v7", slot(dnn.rank[2])},
      {"cudnnGetConvolutionForwardWorkspaceSize", slot(dnn.workspace[0])},
      {"cudnnGetConvolutionBackwardDataWorkspaceSize", slot(dnn.workspace[1])},
      {"cudnnGetConvolutionBackwardFilterWorkspaceSize", slot(dnn.workspace[2])},
      {"cudnnConvolutionForward", slot(dnn.forward)},
      {"cudnnConvolutionBackwardData", slot(dnn.input_gradient)},
      {"cudnnConvolutionBackwardFilter", slot(dnn.filter_gradient)},
  };
  WEFT_TRY_STATUS(load({"libcudnn",
                        {"libcudnn.so.9", "libcudnn.so.8", "libcudnn.so"},
                        "convolutions on the GPU are slow: libcudnn not found",
                        "install cuDNN 8 or 9, or set LD_LIBRARY_PATH to its folder"},
                       wanted));
  return dnn;
}

constexpr Code kOutOfMemory = 2;

// Error codes of the CUDA driver.
std::string remedy_for(Code code) {
  if (is_kernel_error(code))
    return "a kernel failed, and this process can run no more kernels: restart the program";
  switch (code) {
    case kOutOfMemory:
      return "use a smaller batch or model; nvidia-smi shows which processes use the GPU's memory";
    case 46:  // CUDA_ERROR_DEVICE_UNAVAILABLE
      return "another process uses the GPU in exclusive compute mode: nvidia-smi shows which";
    case 209:  // no binary for the GPU
    case 218:  // invalid PTX
    case 222:  // unsupported PTX version
      return "the driver is older than the CUDA toolkit: install a newer driver or an older libnvrtc";
    case 45:   // not permitted for now
    case 214:  // uncorrectable ECC error
    case 220:  // uncorrectable NVLink error
    case 999:
      return "the GPU may be lost: check nvidia-smi and the kernel log (Xid), then restart the program";
    default: return {};
  }
}

template <class Table>
Result<const Table*> once(const Result<Table>& loaded) {
  if (!loaded.ok()) return loaded.error();
  return &loaded.value();
}

}  // namespace

Result<const Driver*> driver() {
  static const Result<Driver> loaded = load_driver();
  return once(loaded);
}

Result<const Compiler*> compiler() {
  static const Result<Compiler> loaded = load_compiler();
  return once(loaded);
}

Result<const Blas*> blas() {
  static const Result<Blas> loaded = load_blas();
  return once(loaded);
}

Result<const BlasLt*> blas_lt() {
  static const Result<BlasLt> loaded = load_blas_lt();
  return once(loaded);
}

Result<const Dnn*> dnn() {
  static const Result<Dnn> loaded = load_dnn();
  return once(loaded);
}

Status check(Code code, std::string_view what) {
  if (code == 0) return {};
  if (code >= kBlasCodeOffset) {
    constexpr Code kNoMemory = kBlasCodeOffset + 3;
    return environment_error(
        fmt::format("the GPU failed to {}: cuBLAS returned {} (code {})", what,
                    code == kNoMemory ? "out of memory" : "an error", code - kBlasCodeOffset),
        remedy_for(code == kNoMemory ? kOutOfMemory : 0));
  }
  const char* text = nullptr;
  if (const auto loaded = driver(); loaded.ok()) loaded.value()->error_text(code, &text);
  return environment_error(
      fmt::format("the GPU failed to {}: {} (code {})", what, text ? text : "unknown error", code),
      remedy_for(code));
}

}  // namespace weft::device::cuda
