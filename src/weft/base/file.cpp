#include "weft/base/file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <new>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/descriptor.h"
#include "weft/base/nearest.h"
#include "weft/base/units.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;  // read and write transfer at most 2 GiB per call

Error failure(std::string_view verb, const std::string& path, int code, std::string hint = {}) {
  return environment_error(fmt::format("cannot {} {}: {}", verb, path, std::generic_category().message(code)),
                           std::move(hint));
}

// A hint for a missing file: the most similar name in its folder.
std::string suggest_neighbour(const fs::path& path) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (fs::directory_iterator entry(path.has_parent_path() ? path.parent_path() : ".", ignored), end;
       entry != end; entry.increment(ignored))
    names.push_back(entry->path().filename().string());
  std::ranges::sort(names);  // folders are not listed in a fixed order
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  return did_you_mean(path.filename().string(), candidates);
}

Error read_failure(const std::string& path, int code) {
  return failure("read", path, code, code == ENOENT ? suggest_neighbour(path) : std::string());
}

Error write_failure(const std::string& path, int code) {
  const bool full = code == ENOSPC || code == EDQUOT || code == EFBIG;
  const bool refused = code == EACCES || code == EPERM || code == EROFS;
  return failure("write", path, code,
                 full              ? "free some space, or write to another disk"
                 : refused         ? "write to a folder that you own"
                 : code == ENOENT  ? "create the folder first"
                 : code == ENOTDIR ? "name a file in a folder"
                                   : "");
}

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// Whether a leftover file is safe to reuse. Its owner, or someone with another hard link to it,
// could change what is written.
bool is_ours(const struct stat& about) {
  return S_ISREG(about.st_mode) && about.st_uid == geteuid() && about.st_nlink <= 1;
}

// A random name that no other user can have created in advance.
std::string new_partial(const std::string& partial) {
  std::array<std::uint8_t, 8> bytes{};
  // Without randomness the name may exist already: then O_EXCL fails, and the error is reported.
  static_cast<void>(getrandom(bytes.data(), bytes.size(), GRND_NONBLOCK));
  return fmt::format("{}.{:02x}", partial, fmt::join(bytes, ""));
}

// Opens and locks the temporary file. If it is not safe to reuse, `partial` is changed to a random
// name. The lock may belong to a file that another writer has since renamed. Then the name refers
// to another file, and the loop tries again.
Result<Descriptor> open_partial(std::string& partial, const std::string& path) {
  constexpr int kMostTries = 100;  // each try lost to a writer that just finished
  for (int tries = 0; tries < kMostTries; ++tries) {
    Descriptor file(open(partial.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666));
    struct stat first = {};
    if (!file.valid() || fstat(file.number(), &first) != 0 || !is_ours(first)) {
      const int code = file.valid() ? EACCES : errno;
      if (code != EACCES && code != ELOOP && code != EISDIR && code != ENXIO && code != EPERM)
        return write_failure(path, code);
      const std::string fresh = new_partial(partial);
      Descriptor own(open(fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666));
      if (!own.valid()) return write_failure(path, errno);
      partial = fresh;
      return own;
    }
    if (flock(file.number(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno == EWOULDBLOCK)
        return environment_error(fmt::format("cannot write {}: another process is writing it", path),
                                 "wait for the other writer, or choose another name");
      // Some network file systems have no locks. Rename is atomic there as well; only concurrent
      // writers of one name would interfere.
    }
    struct stat held = {}, named = {};
    if (fstat(file.number(), &held) != 0) return write_failure(path, errno);
    if (stat(partial.c_str(), &named) == 0 && same_file(held, named)) return file;
  }
  return write_failure(path, EBUSY);
}

Status write_all(int file, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t wrote = write(file, bytes.data(), std::min(bytes.size(), kMostAtOnce));
    if (wrote < 0) {
      if (errno == EINTR) continue;
      return write_failure(path, errno);
    }
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return {};
}

Status make_durable(int file, const std::string& path) {
  while (fsync(file) != 0) {
    if (errno == EINVAL || errno == ENOTSUP) return {};  // file systems that cannot sync a folder
    if (errno != EINTR) return write_failure(path, errno);
  }
  return {};
}

// Writes the temporary file and renames it to its final name.
Status fill_and_rename(const Descriptor& file, const std::string& partial, const std::string& target,
                       std::optional<mode_t> permissions, std::span<const std::string_view> pieces,
                       const std::string& path) {
  if (ftruncate(file.number(), 0) != 0) return write_failure(path, errno);
  for (const std::string_view piece : pieces) WEFT_TRY_STATUS(write_all(file.number(), piece, path));
  if (permissions && fchmod(file.number(), *permissions) != 0) return write_failure(path, errno);
  WEFT_TRY_STATUS(make_durable(file.number(), path));
  if (rename(partial.c_str(), target.c_str()) != 0) return write_failure(path, errno);
  return {};
}

// Waits for data from a pipe that was opened non-blocking, then makes it blocking. A pipe without a
// writer would block forever.
Status wait_for_writer(const Descriptor& pipe, const std::string& path, std::chrono::milliseconds patience) {
  pollfd wanted{pipe.number(), POLLIN, 0};
  const int ready = poll(&wanted, 1, static_cast<int>(patience.count()));
  if (ready < 0) return read_failure(path, errno);
  if (ready == 0)
    return environment_error(
        fmt::format("cannot read {}: it is a pipe that delivered no data within {}", path,
                    print_seconds(std::chrono::duration<double>(patience).count())),
        "only one process can read a pipe: use a file for several ranks");
  if (fcntl(pipe.number(), F_SETFL, 0) != 0) return read_failure(path, errno);
  return {};
}

}  // namespace

Result<Descriptor> open_to_read(const std::string& path, std::chrono::milliseconds patience) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat about = {};
  if (!file.valid() || fstat(file.number(), &about) != 0) return read_failure(path, errno);
  if (S_ISDIR(about.st_mode)) return read_failure(path, EISDIR);
  if (S_ISFIFO(about.st_mode)) WEFT_TRY_STATUS(wait_for_writer(file, path, patience));
  if (!S_ISREG(about.st_mode) && !S_ISFIFO(about.st_mode))
    return environment_error(fmt::format("cannot read {}: expected a file or a pipe, found a device", path));
  return file;
}

Result<std::string> read_file(const std::string& path, std::int64_t most_bytes) {
  WEFT_TRY(file, open_to_read(path));
  struct stat about = {};
  if (fstat(file.number(), &about) != 0) return read_failure(path, errno);
  const auto too_long = [&](std::string found) {
    return user_error(fmt::format("{} is too large: expected at most {}, found {}", path,
                                  print_bytes(static_cast<double>(most_bytes)), found));
  };
  if (about.st_size > most_bytes) return too_long(print_bytes(static_cast<double>(about.st_size)));

  // Pipes have no size, and a file may grow while it is read. So one byte more than expected is
  // requested, and reading ends at end of file.
  std::string bytes;
  std::size_t filled = 0;
  try {
    bytes.resize(static_cast<std::size_t>(about.st_size) + 1);
    for (;;) {
      const ssize_t got =
          read(file.number(), bytes.data() + filled, std::min(bytes.size() - filled, kMostAtOnce));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return read_failure(path, errno);
      if (got == 0) break;
      filled += static_cast<std::size_t>(got);
      if (static_cast<std::int64_t>(filled) > most_bytes) return too_long("more");
      if (filled == bytes.size()) bytes.resize(2 * filled + 4096);
    }
  } catch (const std::bad_alloc&) {
    return environment_error(fmt::format("cannot read {}: not enough memory for {}", path,
                                         print_bytes(static_cast<double>(about.st_size))));
  }
  bytes.resize(filled);
  return bytes;
}

Status write_file_atomically(const std::string& path, std::span<const std::string_view> pieces) {
  std::error_code problem;
  fs::path target = path;
  std::optional<mode_t> permissions;
  struct stat old = {};
  if (stat(path.c_str(), &old) == 0) {
    if (S_ISDIR(old.st_mode)) return write_failure(path, EISDIR);
    if (!S_ISREG(old.st_mode))
      return environment_error(fmt::format("cannot write {}: expected a regular file", path));
    // Rename would replace a read-only file silently.
    if (access(path.c_str(), W_OK) != 0) return write_failure(path, errno);
    permissions = old.st_mode & 07777;
    target = fs::canonical(path, problem);
    if (problem) return write_failure(path, problem.value());
  }
  if (!target.has_filename()) return write_failure(path, EISDIR);
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  std::string partial = (folder / fmt::format(".{}.partial", target.filename().string())).string();

  WEFT_TRY(file, open_partial(partial, path));
  const Status written = fill_and_rename(file, partial, target.string(), permissions, pieces, path);
  if (!written.ok()) {
    unlink(partial.c_str());
    return written;
  }
  // A folder that is writable but not readable cannot be opened; the rename is valid nevertheless.
  const Descriptor holder(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return holder.valid() ? make_durable(holder.number(), path) : Status();
}

Status write_file_atomically(const std::string& path, std::string_view text) {
  return write_file_atomically(path, std::span(&text, 1));
}

}  // namespace weft
