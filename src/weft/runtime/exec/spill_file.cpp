#include "weft/runtime/exec/spill_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "weft/base/units.h"

namespace weft::exec {
namespace {

// Opens an unnamed file if the file system supports it, else unlinks a named one at once.
int open_unnamed(const std::string& folder) {
  constexpr int kMode = 0600;
#ifdef O_TMPFILE
  if (const int made = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kMode); made >= 0) return made;
#endif
  std::string name = folder + "/weft_spill_XXXXXX";
  const int made = mkostemp(name.data(), O_CLOEXEC);
  if (made >= 0) unlink(name.c_str());
  return made;
}

}  // namespace

Result<SpillFile> SpillFile::make(const std::string& folder, std::int64_t bytes) {
  std::error_code unused;
  const std::string where = folder.empty() ? std::filesystem::temp_directory_path(unused).string() : folder;
  SpillFile file(open_unnamed(where.empty() ? "/tmp" : where));
  if (file.descriptor_ < 0)
    return environment_error(
        fmt::format("cannot spill to {}: {}", where, std::strerror(errno)),
        "spill files are stored beside the checkpoint: checkpoint = 'folder/model.safetensors'");
  if (const int failed = posix_fallocate(file.descriptor_, 0, bytes); failed != 0)
    return environment_error(
        fmt::format("no room to spill {} to {}: {}", print_bytes(static_cast<double>(bytes)), where,
                    std::strerror(failed)),
        "a larger memory_limit spills less");
  return file;
}

SpillFile::~SpillFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

Status SpillFile::lay_over(std::byte* at, std::int64_t bytes) {
  if (bytes <= 0) return {};
  void* const made = mmap(at, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                          descriptor_, next_);
  if (made == MAP_FAILED)
    return environment_error(fmt::format("cannot map the spill file: {}", std::strerror(errno)));
  // Tensors are read sequentially, once per use.
  (void)madvise(made, static_cast<std::size_t>(bytes), MADV_SEQUENTIAL);
  next_ += bytes;
  return {};
}

void release_pages(std::byte* at, std::int64_t bytes) {
  if (bytes <= 0) return;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGE_SIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  const std::uintptr_t first = begin / page * page,
                       last = (begin + static_cast<std::uintptr_t>(bytes) + page - 1) / page * page;
  (void)madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace weft::exec
