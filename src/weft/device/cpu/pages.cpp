#include "weft/device/cpu/pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "weft/base/units.h"

namespace weft::device::cpu {

Result<Pages> Pages::take(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  void* const found = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (found == MAP_FAILED)
    return environment_error(fmt::format("cannot allocate {} of memory: {}",
                                         print_bytes(static_cast<double>(size)), std::strerror(errno)));
  // Huge pages if available: fewer TLB misses when a kernel traverses a matrix.
  madvise(found, size, MADV_HUGEPAGE);
  return Pages({static_cast<std::byte*>(found), size});
}

Pages::~Pages() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

}  // namespace weft::device::cpu
