#include "weft/communication/transport/segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <utility>

#include "weft/base/machine.h"
#include "weft/base/units.h"

namespace weft::transport {
namespace {

constexpr std::size_t kHugePage = 2u << 20;  // x86_64, and aarch64 with pages of 4 KiB
// Bytes populated between checks of free memory: zeroing them takes some 100 times longer than a
// check.
constexpr std::size_t kTakenAtOnce = 64u << 20;
constexpr auto kFallbackFolder = "/dev/shm";

// Linux 5.14; older C libraries lack the constant.
#ifdef MADV_POPULATE_WRITE
constexpr int kPopulateWrite = MADV_POPULATE_WRITE;
#else
constexpr int kPopulateWrite = 23;
#endif

Error no_memory(std::size_t bytes, std::string_view reason) {
  std::string free_now = print_bytes(static_cast<double>(available_memory()));
  return environment_error(fmt::format("cannot allocate shared memory ({}): {} requested, {} free", reason,
                                       print_bytes(static_cast<double>(bytes)), free_now),
                           "use smaller buffers or fewer ranks, or raise the memory limit of this job");
}

// An unnamed file.
struct Anonymous {
  int descriptor = -1;   // -1: errno says why
  bool limited = false;  // limited by a file system: running out raises SIGBUS
};

Anonymous make_anonymous() {
  if (const int made = memfd_create("weft", MFD_CLOEXEC | MFD_ALLOW_SEALING); made >= 0) return {made, false};
  if (errno != ENOSYS && errno != EPERM) return {};
  return {open(kFallbackFolder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), true};
}

// Populates a range of `data`, which is mapped from the start of the file.
Status take_pages(int descriptor, std::byte* data, std::size_t offset, std::size_t bytes) {
  // Rounded to whole pages for madvise.
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t end = offset + bytes;
  for (std::size_t at = offset / page * page; at < end; at += kTakenAtOnce) {
    const std::size_t now = std::min(kTakenAtOnce, end - at);
    // Out of memory, the kernel would kill a process instead of failing the call.
    const std::int64_t available = available_memory();
    if (available > 0 && end - at > static_cast<std::size_t>(available))
      return no_memory(bytes, "the machine is out of memory");
    if (madvise(data + at, now, kPopulateWrite) == 0) continue;
    if (errno != EINVAL) return no_memory(bytes, std::strerror(errno));
    if (fallocate(descriptor, 0, static_cast<off_t>(at), static_cast<off_t>(now)) == 0) continue;
    // If the kernel supports neither, pages are allocated on first touch, as for any memory.
    if (errno != EOPNOTSUPP && errno != ENOSYS) return no_memory(bytes, std::strerror(errno));
  }
  return {};
}

}  // namespace

// A mapping of a file in this process, one per file: ranks that are threads use the same addresses.
// That saves TLB entries, and thread sanitizers see the synchronization.
class Segment::Mapping {
 public:
  static Result<std::shared_ptr<const Mapping>> of(int descriptor, std::size_t bytes) {
    struct stat file {};
    if (fstat(descriptor, &file) != 0)
      return environment_error(fmt::format("cannot inspect shared memory: {}", std::strerror(errno)));
    if (!S_ISREG(file.st_mode) || file.st_size < 0 || static_cast<std::uint64_t>(file.st_size) < bytes)
      return environment_error(
          fmt::format("shared memory is shorter than expected: {} bytes, expected {}", file.st_size, bytes));
    const Key key{file.st_dev, file.st_ino};
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    if (const auto known = all.mappings.find(key); known != all.mappings.end())
      if (auto mapping = known->second.lock(); mapping && mapping->bytes_ >= bytes)
        return {std::move(mapping)};
    std::byte* data = map_aligned(descriptor, bytes);
    if (data == nullptr) return no_memory(bytes, std::strerror(errno));
    const std::shared_ptr<const Mapping> mapping(new Mapping(key, data, bytes));
    all.mappings[key] = mapping;
    return mapping;
  }

  ~Mapping() {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    // The entry may have been replaced since the last reference was released.
    if (const auto known = all.mappings.find(key_); known != all.mappings.end() && known->second.expired())
      all.mappings.erase(known);
    munmap(data_, bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::byte* data() const { return data_; }

 private:
  using Key = std::pair<dev_t, ino_t>;
  struct Registry {
    std::mutex mutex;
    std::map<Key, std::weak_ptr<const Mapping>> mappings;
  };
  static Registry& registry() {
    static auto* const kept = new Registry;  // never destroyed: static segments may outlive it
    return *kept;
  }

  Mapping(Key key, std::byte* data, std::size_t bytes) : key_(key), data_(data), bytes_(bytes) {}

  // nullptr, with errno, if it cannot be mapped.
  static std::byte* map_aligned(int descriptor, std::size_t bytes) {
    constexpr int kAccess = PROT_READ | PROT_WRITE;
    if (bytes < kHugePage) {
      void* const mapped = mmap(nullptr, bytes, kAccess, MAP_SHARED, descriptor, 0);
      return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
    }
    // Reserves extra address space, maps the file at the aligned part, and releases the rest.
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    if (bytes > SIZE_MAX - kHugePage - page) return errno = ENOMEM, nullptr;
    const std::size_t whole = (bytes + page - 1) / page * page;
    void* const taken =
        mmap(nullptr, whole + kHugePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (taken == MAP_FAILED) return nullptr;
    auto* const begin = static_cast<std::byte*>(taken);
    const std::size_t skipped = (kHugePage - reinterpret_cast<std::uintptr_t>(begin) % kHugePage) % kHugePage;
    void* const mapped = mmap(begin + skipped, bytes, kAccess, MAP_SHARED | MAP_FIXED, descriptor, 0);
    if (mapped == MAP_FAILED) {
      const int reason = errno;
      munmap(taken, whole + kHugePage);
      errno = reason;
      return nullptr;
    }
    if (skipped > 0) munmap(begin, skipped);
    if (skipped < kHugePage) munmap(begin + skipped + whole, kHugePage - skipped);
    return static_cast<std::byte*>(mapped);
  }

  Key key_;
  std::byte* data_;
  std::size_t bytes_;
};

Result<Segment> Segment::create(std::size_t bytes, Backing backing) {
  bytes = std::max<std::size_t>(bytes, 1);
  const std::int64_t available = available_memory();
  if (backing == Backing::full && available > 0 && bytes > static_cast<std::size_t>(available))
    return no_memory(bytes, "more than the machine has");
  const Anonymous file = make_anonymous();
  if (file.descriptor < 0)
    return environment_error(fmt::format("cannot create shared memory: {}", std::strerror(errno)));
  if (bytes > static_cast<std::size_t>(INT64_MAX) ||
      ftruncate(file.descriptor, static_cast<off_t>(bytes)) != 0) {
    const int reason = bytes > static_cast<std::size_t>(INT64_MAX) ? EFBIG : errno;
    close(file.descriptor);
    return no_memory(bytes, std::strerror(reason));
  }
  // Sealed, so that no receiver of the descriptor can truncate the memory under the others.
  fcntl(file.descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  WEFT_TRY(segment, adopt(file.descriptor, bytes));
  if (backing == Backing::full && bytes >= kHugePage) madvise(segment.data_, bytes, MADV_HUGEPAGE);
  if (backing == Backing::full || file.limited) WEFT_TRY_STATUS(segment.populate(0, bytes));
  return segment;
}

Result<Segment> Segment::map(int descriptor, std::size_t bytes) {
  if (descriptor < 0) return environment_error("shared memory did not arrive: its descriptor is missing");
  return adopt(descriptor, std::max<std::size_t>(bytes, 1));
}

Result<Segment> Segment::adopt(int descriptor, std::size_t bytes) {
  Segment segment;
  segment.descriptor_ = descriptor;
  WEFT_TRY(mapping, Mapping::of(descriptor, bytes));
  segment.mapping_ = std::move(mapping);
  segment.data_ = segment.mapping_->data();
  segment.size_ = bytes;
  return segment;
}

Segment::~Segment() {
  mapping_.reset();
  if (descriptor_ >= 0) close(descriptor_);
}

Segment::Segment(Segment&& other) noexcept
    : mapping_(std::move(other.mapping_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

Segment& Segment::operator=(Segment&& other) noexcept {
  Segment taken(std::move(other));
  std::swap(mapping_, taken.mapping_);
  std::swap(data_, taken.data_);
  std::swap(size_, taken.size_);
  std::swap(descriptor_, taken.descriptor_);
  return *this;
}

Status Segment::populate(std::size_t offset, std::size_t bytes) const {
  WEFT_CHECK(offset <= size_ && bytes <= size_ - offset);
  return take_pages(descriptor_, data_, offset, bytes);
}

bool has_several_numa_nodes() {
  // "0" or "0-1" or "0,8".
  static const bool several = [] {
    std::ifstream file("/sys/devices/system/node/has_memory");
    std::string nodes;
    return static_cast<bool>(file >> nodes) && nodes.find_first_of(",-") != std::string::npos;
  }();
  return several;
}

}  // namespace weft::transport
