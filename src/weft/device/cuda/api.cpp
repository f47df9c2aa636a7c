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

// Looks functions up one after another and remembers the first that is not there.
class Lookup {
 public:
  explicit Lookup(void* library) : library_(library) {}

  template <class Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    if (function == nullptr && missing_.empty()) missing_ = name;
  }
  const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

Error too_old(std::string_view library, const std::string& function) {
  return world_error(fmt::format("{} of this machine is too old: it has no {}", library, function),
                     "CUDA 12 or later is needed");
}

Result<Driver> load_driver() {
  void* const library = open_any({"libcuda.so.1"});
  if (library == nullptr)
    return world_error("this machine has no NVIDIA driver: libcuda.so.1 is not there",
                       "without ON GPU it runs on the processor");
  Driver driver;
  Lookup at(library);
  at.find(driver.init, "cuInit");
  at.find(driver.driver_version, "cuDriverGetVersion");
  at.find(driver.error_text, "cuGetErrorString");
  at.find(driver.device_count, "cuDeviceGetCount");
  at.find(driver.device, "cuDeviceGet");
  at.find(driver.device_name, "cuDeviceGetName");
  at.find(driver.device_attribute, "cuDeviceGetAttribute");
  at.find(driver.retain_context, "cuDevicePrimaryCtxRetain");
  at.find(driver.release_context, "cuDevicePrimaryCtxRelease_v2");
  at.find(driver.set_context, "cuCtxSetCurrent");
  at.find(driver.memory_info, "cuMemGetInfo_v2");
  at.find(driver.allocate, "cuMemAlloc_v2");
  at.find(driver.free, "cuMemFree_v2");
  at.find(driver.allocate_host, "cuMemHostAlloc");
  at.find(driver.free_host, "cuMemFreeHost");
  at.find(driver.fill, "cuMemsetD8Async");
  at.find(driver.copy_in, "cuMemcpyHtoDAsync_v2");
  at.find(driver.copy_out, "cuMemcpyDtoHAsync_v2");
  at.find(driver.copy, "cuMemcpyDtoDAsync_v2");
  at.find(driver.create_stream, "cuStreamCreate");
  at.find(driver.destroy_stream, "cuStreamDestroy_v2");
  at.find(driver.synchronize, "cuStreamSynchronize");
  at.find(driver.stream_wait, "cuStreamWaitEvent");
  at.find(driver.create_event, "cuEventCreate");
  at.find(driver.destroy_event, "cuEventDestroy_v2");
  at.find(driver.record, "cuEventRecord");
  at.find(driver.event_query, "cuEventQuery");
  at.find(driver.event_synchronize, "cuEventSynchronize");
  at.find(driver.event_elapsed, "cuEventElapsedTime");
  at.find(driver.load_module, "cuModuleLoadData");
  at.find(driver.unload_module, "cuModuleUnload");
  at.find(driver.find_function, "cuModuleGetFunction");
  at.find(driver.launch, "cuLaunchKernel");
  if (!at.missing().empty()) return too_old("the NVIDIA driver", at.missing());
  if (const Code code = driver.init(0); code != 0) {
    const char* text = nullptr;
    driver.error_text(code, &text);
    return world_error(
        fmt::format("the NVIDIA driver does not start: {} (code {})", text ? text : "no reason given", code),
        "nvidia-smi tells more; without ON GPU it runs on the processor");
  }
  return driver;
}

Result<Compiler> load_compiler() {
  void* const library = open_any({"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"});
  if (library == nullptr)
    return world_error("kernels for the GPU cannot be compiled: libnvrtc is not there",
                       "the CUDA toolkit has it; LD_LIBRARY_PATH may say where");
  Compiler compiler;
  Lookup at(library);
  at.find(compiler.version, "nvrtcVersion");
  at.find(compiler.error_text, "nvrtcGetErrorString");
  at.find(compiler.create, "nvrtcCreateProgram");
  at.find(compiler.destroy, "nvrtcDestroyProgram");
  at.find(compiler.compile, "nvrtcCompileProgram");
  at.find(compiler.log_size, "nvrtcGetProgramLogSize");
  at.find(compiler.log, "nvrtcGetProgramLog");
  at.find(compiler.image_size, "nvrtcGetCUBINSize");
  at.find(compiler.image, "nvrtcGetCUBIN");
  if (!at.missing().empty()) return too_old("libnvrtc", at.missing());
  return compiler;
}

Result<Blas> load_blas() {
  void* const library = open_any({"libcublas.so.13", "libcublas.so.12", "libcublas.so"});
  if (library == nullptr)
    return world_error("matrices cannot be multiplied on the GPU: libcublas is not there",
                       "the CUDA toolkit has it; LD_LIBRARY_PATH may say where");
  Blas blas;
  Lookup at(library);
  at.find(blas.create, "cublasCreate_v2");
  at.find(blas.destroy, "cublasDestroy_v2");
  at.find(blas.set_stream, "cublasSetStream_v2");
  at.find(blas.set_workspace, "cublasSetWorkspace_v2");
  at.find(blas.multiply, "cublasGemmStridedBatchedEx");
  if (!at.missing().empty()) return too_old("libcublas", at.missing());
  return blas;
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

Status check(Code code, std::string_view what) {
  if (code == 0) return {};
  const char* text = nullptr;
  if (const auto loaded = driver(); loaded.ok()) loaded.value()->error_text(code, &text);
  return world_error(
      fmt::format("the GPU fails to {}: {} (code {})", what, text ? text : "unknown error", code));
}

}  // namespace weft::device::cuda
