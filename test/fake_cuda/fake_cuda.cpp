// fake_cuda.cpp -- a fake driver, NVRTC and cuBLAS that compute nothing and fail on request.
//
//   WEFT_FAKE_CUDA='cuInit=100'            the error code that this call always returns
//                  'version=11080'         the driver's version; also capability=75, nvrtc=13,
//                                          memory=1000000 (bytes)
//                  'fails_at=40'           the 40th launch faults: later calls return 700
//                  'hangs_at=40'           the 40th launch never ends
//
// Used to test error reporting on machines without a GPU. Device memory is host memory. Kernels do
// nothing, except weft_tell, which writes the progress of a stream.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

long setting(const char* name, long otherwise) {
  const char* const all = std::getenv("WEFT_FAKE_CUDA");
  const std::string key = std::string(name) + "=", text = std::string(",") + (all != nullptr ? all : "");
  const std::size_t at = text.find("," + key);
  return at == std::string::npos ? otherwise : std::strtol(text.c_str() + at + 1 + key.size(), nullptr, 10);
}

constexpr int kTrapped = 700, kNotReady = 600;

struct Launch {  // what a launch of weft_tell writes
  std::uint64_t* word = nullptr;
  std::uint64_t number = 0;
};
struct Graph {
  std::vector<Launch> launches;  // without an address, a launch writes nothing
};

std::recursive_mutex mutex;  // guards the state below, which the threads of ranks share
long launches = 0;
std::atomic<bool> trapped = false, stuck = false;
Graph* captured = nullptr;  // launches go here during capture

void run(const Launch& launch) {
  const std::lock_guard lock(mutex);
  ++launches;
  if (launches == setting("fails_at", -1)) trapped = true;
  if (launches == setting("hangs_at", -1)) stuck = true;
  if (!trapped && !stuck && launch.word != nullptr) *launch.word = launch.number;
}

void submit(const Launch& launch) {
  const std::lock_guard lock(mutex);
  if (captured != nullptr)
    captured->launches.push_back(launch);
  else
    run(launch);
}

int state() { return trapped ? kTrapped : 0; }
// Ends after a few seconds: a caller may have queried before the hang and be waiting here now.
int synchronize() {
  for (int i = 0; stuck && i < 5; ++i) std::this_thread::sleep_for(std::chrono::seconds(1));
  return state();
}
int code(const char* call) { return static_cast<int>(setting(call, 0)); }

char tell_function, other_function;  // handles are the addresses of these
template <class T>
void make(T* handle) {
  *handle = reinterpret_cast<T>(&other_function);
}
void* allocate(std::size_t bytes) { return std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096); }

}  // namespace

#define CALL(name, ...) extern "C" __attribute__((visibility("default"))) int name(__VA_ARGS__)
#define FINE(name) \
  CALL(name) { return code(#name); }

using Pointer = unsigned long long;
using Handle = void*;

CALL(cuInit, unsigned) { return code("cuInit"); }
CALL(cuDriverGetVersion, int* version) {
  *version = static_cast<int>(setting("version", 13000));
  return 0;
}
CALL(cuGetErrorString, int what, const char** text) {
  *text = what == 100        ? "no CUDA-capable device is detected"
          : what == 2        ? "out of memory"
          : what == 46       ? "CUDA-capable device(s) is/are busy or unavailable"
          : what == kTrapped ? "an illegal memory access was encountered"
                             : "a fake fault";
  return 0;
}
CALL(cuDeviceGetCount, int* count) {
  *count = 1;
  return code("cuDeviceGetCount");
}
CALL(cuDeviceGet, int* device, int) {
  *device = 0;
  return 0;
}
CALL(cuDeviceGetName, char* name, int length, int) {
  std::strncpy(name, "Fake H200", static_cast<std::size_t>(length));
  return 0;
}
CALL(cuDeviceGetAttribute, int* value, int attribute, int) {
  const int capability = static_cast<int>(setting("capability", 80));
  *value = attribute == 75 ? capability / 10 : attribute == 76 ? capability % 10 : attribute == 16 ? 108 : 0;
  return 0;
}
CALL(cuDevicePrimaryCtxRetain, Handle* context, int) {
  make(context);
  return code("cuDevicePrimaryCtxRetain");
}
FINE(cuDevicePrimaryCtxRelease_v2)
FINE(cuCtxSetCurrent)
CALL(cuMemGetInfo_v2, std::size_t* free, std::size_t* total) {
  *free = *total = static_cast<std::size_t>(setting("memory", 1L << 30));
  return state();
}
CALL(cuMemAlloc_v2, Pointer* at, std::size_t bytes) {
  if (bytes > static_cast<std::size_t>(setting("memory", 1L << 30))) return 2;
  *at = reinterpret_cast<Pointer>(allocate(bytes));
  return code("cuMemAlloc_v2");
}
CALL(cuMemFree_v2, Pointer at) {
  std::free(reinterpret_cast<void*>(at));
  return 0;
}
CALL(cuMemHostAlloc, void** at, std::size_t bytes, unsigned) {
  *at = allocate(bytes);
  return code("cuMemHostAlloc");
}
CALL(cuMemFreeHost, void* at) {
  std::free(at);
  return 0;
}
FINE(cuMemGetAllocationGranularity)
FINE(cuMemAddressReserve)
FINE(cuMemAddressFree)
FINE(cuMemCreate)
FINE(cuMemRelease)
FINE(cuMemMap)
FINE(cuMemUnmap)
FINE(cuMemSetAccess)
CALL(cuMemsetD8Async, Pointer to, unsigned char value, std::size_t bytes, Handle) {
  std::memset(reinterpret_cast<void*>(to), value, bytes);
  return state();
}
CALL(cuMemcpyHtoDAsync_v2, Pointer to, const void* from, std::size_t bytes, Handle) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return state();
}
CALL(cuMemcpyDtoHAsync_v2, void* to, Pointer from, std::size_t bytes, Handle) {
  std::memcpy(to, reinterpret_cast<void*>(from), bytes);
  return state();
}
CALL(cuMemcpyDtoDAsync_v2, Pointer to, Pointer from, std::size_t bytes, Handle) {
  std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
  return state();
}
CALL(cuStreamCreateWithPriority, Handle* stream, unsigned, int) {
  make(stream);
  return state();
}
CALL(cuCtxGetStreamPriorityRange, int* least, int* greatest) {
  *least = *greatest = 0;
  return state();
}
FINE(cuStreamDestroy_v2)
CALL(cuStreamSynchronize, Handle) { return synchronize(); }
FINE(cuStreamWaitEvent)
CALL(cuEventCreate, Handle* event, unsigned) {
  make(event);
  return state();
}
FINE(cuEventDestroy_v2)
CALL(cuEventRecord, Handle, Handle) { return state(); }
CALL(cuEventRecordWithFlags, Handle, Handle, unsigned) { return state(); }
CALL(cuEventQuery, Handle) { return stuck ? kNotReady : state(); }
CALL(cuEventSynchronize, Handle) { return synchronize(); }
CALL(cuEventElapsedTime, float* milliseconds, Handle, Handle) {
  *milliseconds = 1;
  return state();
}
CALL(cuStreamBeginCapture_v2, Handle, int) {
  const std::lock_guard lock(mutex);
  captured = new Graph;
  return state();
}
CALL(cuStreamEndCapture, Handle, Graph** graph) {
  const std::lock_guard lock(mutex);
  *graph = captured;
  captured = nullptr;
  return state();
}
CALL(cuGraphInstantiateWithFlags, Graph** executable, Graph* graph, unsigned long long) {
  *executable = new Graph(*graph);
  return state();
}
CALL(cuGraphDestroy, Graph* graph) {
  delete graph;
  return 0;
}
CALL(cuGraphExecDestroy, Graph* graph) {
  delete graph;
  return 0;
}
CALL(cuGraphLaunch, Graph* graph, Handle) {
  if (trapped) return kTrapped;
  for (const Launch& launch : graph->launches) run(launch);
  return 0;  // faults of these launches are reported by later calls
}
CALL(cuModuleLoadData, Handle* module, const void*) {
  make(module);
  return code("cuModuleLoadData");
}
FINE(cuModuleUnload)
CALL(cuModuleGetFunction, Handle* function, Handle, const char* name) {
  *function = std::strcmp(name, "weft_tell") == 0 ? &tell_function : &other_function;
  return 0;
}
FINE(cuFuncSetAttribute)
CALL(cuLaunchKernel, Handle function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
     Handle, void** parameters, void**) {
  if (trapped) return kTrapped;
  if (function == &tell_function)
    submit({*static_cast<std::uint64_t**>(parameters[0]), *static_cast<std::uint64_t*>(parameters[1])});
  else
    submit({});
  return code("cuLaunchKernel");
}
FINE(cuLaunchCooperativeKernel)
FINE(cuTensorMapEncodeTiled)

CALL(nvrtcVersion, int* major, int* minor) {
  *major = static_cast<int>(setting("nvrtc", 13));
  *minor = 0;
  return 0;
}
extern "C" __attribute__((visibility("default"))) const char* nvrtcGetErrorString(int) {
  return "NVRTC_ERROR_COMPILATION";
}
CALL(nvrtcCreateProgram, Handle* program, const char*, const char*, int, const char* const*,
     const char* const*) {
  make(program);
  return 0;
}
FINE(nvrtcDestroyProgram)
FINE(nvrtcCompileProgram)
namespace {
constexpr char kLog[] = "weft.cu(7): error: expected a fake \";\"";
}  // namespace
CALL(nvrtcGetProgramLogSize, Handle, std::size_t* bytes) {
  *bytes = sizeof kLog;
  return 0;
}
CALL(nvrtcGetProgramLog, Handle, char* text) {
  std::memcpy(text, kLog, sizeof kLog);
  return 0;
}
CALL(nvrtcGetCUBINSize, Handle, std::size_t* bytes) {
  *bytes = 1;
  return 0;
}
CALL(nvrtcGetCUBIN, Handle, char* image) {
  *image = 0;
  return 0;
}

CALL(cublasCreate_v2, Handle* blas) {
  make(blas);
  return code("cublasCreate_v2");
}
FINE(cublasDestroy_v2)
FINE(cublasSetStream_v2)
FINE(cublasSetWorkspace_v2)
FINE(cublasSetSmCountTarget)
CALL(cublasGemmStridedBatchedEx) {
  submit({});
  return code("cublasGemmStridedBatchedEx");
}
