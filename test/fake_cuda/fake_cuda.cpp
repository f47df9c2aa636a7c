// fake_cuda.cpp -- a driver, a compiler and a cuBLAS that compute nothing and fail as they are told.
//
//   WEFT_FAKE_CUDA='cuInit=100'            a call's code, every time
//                  'version=11080'         of the driver; likewise capability=75, memory=1000000 (bytes), nvrtc=13
//                  'fails_at=40'           the 40th launch traps: what asks afterwards is answered with 700
//                  'hangs_at=40'           it never ends
//
// For tests of what is said on machines that have no GPU to fail: memory is the host's, kernels do nothing, but for the
// one that tells how far a stream has come.
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

long told(const char* name, long otherwise) {
  const char* const all = std::getenv("WEFT_FAKE_CUDA");
  const std::string key = std::string(name) + "=", text = std::string(",") + (all != nullptr ? all : "");
  const std::size_t at = text.find("," + key);
  return at == std::string::npos ? otherwise : std::strtol(text.c_str() + at + 1 + key.size(), nullptr, 10);
}

constexpr int kTrapped = 700, kNotReady = 600;

struct Told {  // what a launch of weft_tell is to write
  std::uint64_t* word = nullptr;
  std::uint64_t number = 0;
};
struct Graph {
  std::vector<Told> launches;  // no word: it writes nothing
};

std::recursive_mutex mutex;  // of what follows, which threads of ranks share
long launches = 0;
std::atomic<bool> trapped = false, stuck = false;
Graph* written_down = nullptr;  // what is launched goes there

void run(const Told& launch) {
  const std::lock_guard lock(mutex);
  ++launches;
  if (launches == told("fails_at", -1)) trapped = true;
  if (launches == told("hangs_at", -1)) stuck = true;
  if (!trapped && !stuck && launch.word != nullptr) *launch.word = launch.number;
}

void give(const Told& launch) {
  const std::lock_guard lock(mutex);
  if (written_down != nullptr)
    written_down->launches.push_back(launch);
  else
    run(launch);
}

int state() { return trapped ? kTrapped : 0; }
// Whoever asked first whether it is done, and then waits, was told so before it got stuck: that ends.
int finished() {
  for (int i = 0; stuck && i < 5; ++i) std::this_thread::sleep_for(std::chrono::seconds(1));
  return state();
}
int code(const char* call) { return static_cast<int>(told(call, 0)); }

char tells, other;  // functions by their addresses
template <class T>
void make(T* handle) {
  *handle = reinterpret_cast<T>(&other);
}
void* take(std::size_t bytes) { return std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096); }

}  // namespace

#define CALL(name, ...) extern "C" __attribute__((visibility("default"))) int name(__VA_ARGS__)
#define FINE(name) \
  CALL(name) { return code(#name); }

using Pointer = unsigned long long;
using Thing = void*;

CALL(cuInit, unsigned) { return code("cuInit"); }
CALL(cuDriverGetVersion, int* version) {
  *version = static_cast<int>(told("version", 13000));
  return 0;
}
CALL(cuGetErrorString, int what, const char** text) {
  *text = what == 100        ? "no CUDA-capable device is detected"
          : what == 2        ? "out of memory"
          : what == 46       ? "CUDA-capable device(s) is/are busy or unavailable"
          : what == kTrapped ? "an illegal memory access was encountered"
                             : "a pretended fault";
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
  std::strncpy(name, "Pretended H200", static_cast<std::size_t>(length));
  return 0;
}
CALL(cuDeviceGetAttribute, int* value, int attribute, int) {
  const int capability = static_cast<int>(told("capability", 80));
  *value = attribute == 75 ? capability / 10 : attribute == 76 ? capability % 10 : attribute == 16 ? 108 : 0;
  return 0;
}
CALL(cuDevicePrimaryCtxRetain, Thing* context, int) {
  make(context);
  return code("cuDevicePrimaryCtxRetain");
}
FINE(cuDevicePrimaryCtxRelease_v2)
FINE(cuCtxSetCurrent)
CALL(cuMemGetInfo_v2, std::size_t* free, std::size_t* total) {
  *free = *total = static_cast<std::size_t>(told("memory", 1L << 30));
  return state();
}
CALL(cuMemAlloc_v2, Pointer* at, std::size_t bytes) {
  if (bytes > static_cast<std::size_t>(told("memory", 1L << 30))) return 2;
  *at = reinterpret_cast<Pointer>(take(bytes));
  return code("cuMemAlloc_v2");
}
CALL(cuMemFree_v2, Pointer at) {
  std::free(reinterpret_cast<void*>(at));
  return 0;
}
CALL(cuMemHostAlloc, void** at, std::size_t bytes, unsigned) {
  *at = take(bytes);
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
CALL(cuMemsetD8Async, Pointer to, unsigned char value, std::size_t bytes, Thing) {
  std::memset(reinterpret_cast<void*>(to), value, bytes);
  return state();
}
CALL(cuMemcpyHtoDAsync_v2, Pointer to, const void* from, std::size_t bytes, Thing) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return state();
}
CALL(cuMemcpyDtoHAsync_v2, void* to, Pointer from, std::size_t bytes, Thing) {
  std::memcpy(to, reinterpret_cast<void*>(from), bytes);
  return state();
}
CALL(cuMemcpyDtoDAsync_v2, Pointer to, Pointer from, std::size_t bytes, Thing) {
  std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
  return state();
}
CALL(cuStreamCreateWithPriority, Thing* stream, unsigned, int) {
  make(stream);
  return state();
}
CALL(cuCtxGetStreamPriorityRange, int* least, int* greatest) {
  *least = *greatest = 0;
  return state();
}
FINE(cuStreamDestroy_v2)
CALL(cuStreamSynchronize, Thing) { return finished(); }
FINE(cuStreamWaitEvent)
CALL(cuEventCreate, Thing* event, unsigned) {
  make(event);
  return state();
}
FINE(cuEventDestroy_v2)
CALL(cuEventRecord, Thing, Thing) { return state(); }
CALL(cuEventRecordWithFlags, Thing, Thing, unsigned) { return state(); }
CALL(cuEventQuery, Thing) { return stuck ? kNotReady : state(); }
CALL(cuEventSynchronize, Thing) { return finished(); }
CALL(cuEventElapsedTime, float* milliseconds, Thing, Thing) {
  *milliseconds = 1;
  return state();
}
CALL(cuStreamBeginCapture_v2, Thing, int) {
  const std::lock_guard lock(mutex);
  written_down = new Graph;
  return state();
}
CALL(cuStreamEndCapture, Thing, Graph** graph) {
  const std::lock_guard lock(mutex);
  *graph = written_down;
  written_down = nullptr;
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
CALL(cuGraphLaunch, Graph* graph, Thing) {
  if (trapped) return kTrapped;
  for (const Told& launch : graph->launches) run(launch);
  return 0;  // what traps on the way is known later
}
CALL(cuModuleLoadData, Thing* module, const void*) {
  make(module);
  return code("cuModuleLoadData");
}
FINE(cuModuleUnload)
CALL(cuModuleGetFunction, Thing* function, Thing, const char* name) {
  *function = std::strcmp(name, "weft_tell") == 0 ? &tells : &other;
  return 0;
}
FINE(cuFuncSetAttribute)
CALL(cuLaunchKernel, Thing function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
     Thing, void** parameters, void**) {
  if (trapped) return kTrapped;
  if (function == &tells)
    give({*static_cast<std::uint64_t**>(parameters[0]), *static_cast<std::uint64_t*>(parameters[1])});
  else
    give({});
  return code("cuLaunchKernel");
}
FINE(cuLaunchCooperativeKernel)
FINE(cuTensorMapEncodeTiled)

CALL(nvrtcVersion, int* major, int* minor) {
  *major = static_cast<int>(told("nvrtc", 13));
  *minor = 0;
  return 0;
}
extern "C" __attribute__((visibility("default"))) const char* nvrtcGetErrorString(int) {
  return "NVRTC_ERROR_COMPILATION";
}
CALL(nvrtcCreateProgram, Thing* program, const char*, const char*, int, const char* const*,
     const char* const*) {
  make(program);
  return 0;
}
FINE(nvrtcDestroyProgram)
FINE(nvrtcCompileProgram)
namespace {
constexpr char kLog[] = "weft.cu(7): error: expected a pretended \";\"";
}  // namespace
CALL(nvrtcGetProgramLogSize, Thing, std::size_t* bytes) {
  *bytes = sizeof kLog;
  return 0;
}
CALL(nvrtcGetProgramLog, Thing, char* text) {
  std::memcpy(text, kLog, sizeof kLog);
  return 0;
}
CALL(nvrtcGetCUBINSize, Thing, std::size_t* bytes) {
  *bytes = 1;
  return 0;
}
CALL(nvrtcGetCUBIN, Thing, char* image) {
  *image = 0;
  return 0;
}

CALL(cublasCreate_v2, Thing* blas) {
  make(blas);
  return code("cublasCreate_v2");
}
FINE(cublasDestroy_v2)
FINE(cublasSetStream_v2)
FINE(cublasSetWorkspace_v2)
FINE(cublasSetSmCountTarget)
CALL(cublasGemmStridedBatchedEx) {
  give({});
  return code("cublasGemmStridedBatchedEx");
}
