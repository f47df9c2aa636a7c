#include "weft/device/cpu/openblas.h"

#ifdef WEFT_HAS_OPENBLAS
#include <dlfcn.h>

#include <cstdlib>
#include <optional>

namespace weft::device::cpu {
namespace {

constexpr const char* kLibrary = "libopenblas.so.0";
constexpr const char* kThreads = "OPENBLAS_NUM_THREADS";

// OpenBLAS reads the variable while it is loaded; child processes must not inherit it.
void* open_without_threads() {
  const bool was_set = std::getenv(kThreads) != nullptr;
  if (!was_set) setenv(kThreads, "1", 1);
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!was_set) unsetenv(kThreads);
  return library;
}

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

std::optional<OpenBlas> load() {
  void* const library = open_without_threads();
  if (library == nullptr) return {};
  OpenBlas blas;
  const bool found = find(library, "cblas_sgemm", blas.sgemm) && find(library, "cblas_dgemm", blas.dgemm) &&
                     find(library, "cblas_sgemv", blas.sgemv) && find(library, "cblas_dgemv", blas.dgemv) &&
                     find(library, "openblas_set_num_threads", blas.set_num_threads);
  if (!found) return {};
  blas.set_num_threads(1);  // whatever the environment says
  return blas;
}

}  // namespace

const OpenBlas* openblas() {
  static const std::optional<OpenBlas> blas = load();
  return blas ? &*blas : nullptr;
}

}  // namespace weft::device::cpu
#endif
