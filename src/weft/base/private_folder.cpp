#include "weft/base/private_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "weft/base/descriptor.h"
#include "weft/base/units.h"

namespace weft {
namespace {

constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

Error cannot(std::string_view verb, std::string_view path, int code) {
  return environment_error(
      fmt::format("cannot {} {}: {}", verb, path, std::generic_category().message(code)));
}

Error is_link(std::string_view what, std::string_view path) {
  return environment_error(fmt::format("expected a {}, found a link: {}", what, path),
                           fmt::format("name the {} itself", what));
}

// Checks the open file itself, since its name may refer to another file by now.
Status check_private(int descriptor, std::string_view what, const std::string& path) {
  struct stat about = {};
  if (::fstat(descriptor, &about) != 0) return cannot("look at", path, errno);
  if (what == "file" && !S_ISREG(about.st_mode))
    return environment_error(fmt::format("expected a regular file: {}", path));
  if (about.st_uid != ::geteuid())
    return environment_error(fmt::format("expected a {} of this user, {}: {} belongs to user {}", what,
                                         ::geteuid(), path, about.st_uid),
                             "use one that you own");
  if ((about.st_mode & kOthersWrite) != 0)
    return environment_error(fmt::format("expected a {} that only its owner may write to: {} has mode {:04o}",
                                         what, path, about.st_mode & 07777),
                             fmt::format("chmod go-w {}", path));
  return {};
}

bool is_missing(int folder, const std::string& name) {
  struct stat about = {};
  return ::fstatat(folder, name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
}

// A trailing slash would follow a link.
std::string without_end_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

Result<Descriptor> open_folder(const std::string& path) {
  Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.valid()) {
    const int code = errno;
    struct stat about = {};
    if (::lstat(path.c_str(), &about) == 0 && S_ISLNK(about.st_mode)) return is_link("folder", path);
    return cannot("open the folder", path, code);
  }
  WEFT_TRY_STATUS(check_private(folder.number(), "folder", path));
  return folder;
}

Status write_bytes(int file, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(file, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return cannot("write", path, errno);
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return {};
}

// Opens a file of the folder, without blocking on a pipe.
Result<Descriptor> open_file(int folder, const std::string& name, int flags, const std::string& path) {
  Descriptor file(::openat(folder, name.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  if (!file.valid()) return errno == ELOOP ? is_link("file", path) : cannot("open", path, errno);
  WEFT_TRY_STATUS(check_private(file.number(), "file", path));
  return file;
}

// Opens and locks the file, so that writes do not mix. The lock may belong to a file that another
// writer has just renamed. Then the name refers to another file, and the loop tries again.
Result<Descriptor> open_partial_of(int folder, const std::string& partial, const std::string& path) {
  constexpr int kMostTries = 100;
  for (int tries = 0; tries < kMostTries; ++tries) {
    WEFT_TRY(file, open_file(folder, partial, O_RDWR | O_CREAT, path));
    // Some network file systems have no locks; the checksum detects mixed writes.
    if (::flock(file.number(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      return environment_error(fmt::format("cannot write {}: another process is writing it", path));
    struct stat held = {}, named = {};
    if (::fstat(file.number(), &held) == 0 &&
        ::fstatat(folder, partial.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 && held.st_dev == named.st_dev &&
        held.st_ino == named.st_ino)
      return file;
  }
  return cannot("write", path, EBUSY);
}

}  // namespace

Result<PrivateFolder> PrivateFolder::open(const std::string& path) {
  const std::string place = without_end_slashes(path);
  WEFT_TRY(folder, open_folder(place));
  return PrivateFolder(place, folder.release());
}

Result<PrivateFolder> PrivateFolder::make(const std::string& path) {
  const std::string place = without_end_slashes(path);
  int problem = 0;
  for (std::size_t slash = place.find('/', 1);; slash = place.find('/', slash + 1)) {
    // Parent folders, including links, are not checked; only the last folder is.
    if (::mkdir(place.substr(0, slash).c_str(), 0700) != 0 && errno != EEXIST) problem = errno;
    if (slash == std::string::npos) break;
  }
  Result<PrivateFolder> opened = open(place);
  if (!opened.ok() && problem != 0) return cannot("create the folder", place, problem);
  return opened;
}

Status PrivateFolder::check(const std::string& path) {
  const std::string place = without_end_slashes(path);
  if (is_missing(AT_FDCWD, place)) return {};
  if (Result<Descriptor> folder = open_folder(place); !folder.ok()) return std::move(folder).error();
  return {};
}

PrivateFolder::~PrivateFolder() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

PrivateFolder::PrivateFolder(PrivateFolder&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

Result<std::optional<std::string>> PrivateFolder::read(const std::string& name,
                                                       std::int64_t most_bytes) const {
  const std::string path = fmt::format("{}/{}", path_, name);
  if (is_missing(descriptor_, name)) return std::optional<std::string>();
  WEFT_TRY(file, open_file(descriptor_, name, O_RDONLY, path));
  std::string bytes;
  std::array<char, 1 << 14> some;
  for (;;) {
    const ssize_t got = ::read(file.number(), some.data(), some.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot("read", path, errno);
    if (got == 0) return std::optional(std::move(bytes));
    bytes.append(some.data(), static_cast<std::size_t>(got));
    if (static_cast<std::int64_t>(bytes.size()) > most_bytes)
      return environment_error(fmt::format("{} is too large: expected at most {}", path,
                                           print_bytes(static_cast<double>(most_bytes))));
  }
}

Status PrivateFolder::write(const std::string& name, std::string_view bytes) const {
  const std::string path = fmt::format("{}/{}", path_, name), partial = fmt::format(".{}.partial", name);
  WEFT_TRY(file, open_partial_of(descriptor_, partial, path));
  if (::ftruncate(file.number(), 0) != 0) return cannot("write", path, errno);
  if (Status written = write_bytes(file.number(), bytes, path); !written.ok()) {
    remove(partial);
    return written;
  }
  if (::renameat(descriptor_, partial.c_str(), descriptor_, name.c_str()) != 0) {
    const int code = errno;
    remove(partial);
    return cannot("write", path, code);
  }
  return {};
}

Status PrivateFolder::make_file(const std::string& name) const {
  WEFT_TRY(file, open_file(descriptor_, name, O_RDWR | O_CREAT, fmt::format("{}/{}", path_, name)));
  return {};
}

Status PrivateFolder::check_file(const std::string& name) const {
  if (is_missing(descriptor_, name)) return {};
  WEFT_TRY(file, open_file(descriptor_, name, O_RDONLY, fmt::format("{}/{}", path_, name)));
  return {};
}

std::vector<PrivateFolder::Entry> PrivateFolder::files() const {
  std::vector<Entry> found;
  DIR* const listing = ::fdopendir(::openat(descriptor_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (listing == nullptr) return found;
  while (const dirent* entry = ::readdir(listing)) {
    struct stat about = {};  // another process of this user may delete the entry
    if (::fstatat(descriptor_, entry->d_name, &about, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(about.st_mode))
      found.push_back({entry->d_name, static_cast<std::int64_t>(about.st_size), about.st_mtim});
  }
  ::closedir(listing);
  return found;
}

void PrivateFolder::mark_as_used(const std::string& name) const {
  const std::array<timespec, 2> now = {{{0, UTIME_NOW}, {0, UTIME_NOW}}};
  // A read-only folder is still useful.
  static_cast<void>(::utimensat(descriptor_, name.c_str(), now.data(), AT_SYMLINK_NOFOLLOW));
}

void PrivateFolder::remove(const std::string& name) const {
  static_cast<void>(::unlinkat(descriptor_, name.c_str(), 0));
}

}  // namespace weft
