#include "weft/communication/transport/secret.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "weft/base/private_folder.h"
#include "weft/base/sha256.h"
#include "weft/communication/transport/rendezvous.h"
#include "weft/communication/transport/variable.h"

namespace weft::transport {
namespace {

constexpr std::size_t kShortest = 16, kLongest = 4096;  // bytes of a secret

Error file_error(const std::string& path, int error) {
  return environment_error(fmt::format("the job's secret cannot be read: {}: {}", path, std::strerror(error)),
                           "set WEFT_JOB_SECRET");
}

Status check_length(const std::string& secret, std::string_view where) {
  if (secret.size() >= kShortest) return {};
  return user_error(
      fmt::format("a job's secret needs at least {} characters: {} has {}", kShortest, where, secret.size()),
      "create one with head -c 32 /dev/urandom | base64");
}

// Opened before it is checked, so that the checked file is the one that is read.
Result<std::string> read_secret_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return file_error(path, errno);
  struct stat info = {};
  std::string secret(kLongest, '\0');
  const bool known = ::fstat(file, &info) == 0;
  const ssize_t came = known && S_ISREG(info.st_mode) ? ::read(file, secret.data(), secret.size()) : -1;
  const int error = known && !S_ISREG(info.st_mode) ? EINVAL : errno;
  ::close(file);
  if (came < 0) return file_error(path, error);
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return user_error(
        fmt::format("other users can read the job's secret: {} has mode {:o}", path, info.st_mode & 0777),
        fmt::format("chmod 600 {}", path));
  }
  if (info.st_uid != ::geteuid() && info.st_uid != 0) {
    return user_error(
        fmt::format("the job's secret belongs to another user: {} is owned by user {}", path, info.st_uid));
  }
  secret.resize(static_cast<std::size_t>(came));
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  WEFT_TRY_STATUS(check_length(secret, path));
  return secret;
}

std::optional<std::filesystem::path> configuration_folder() {
  if (const auto folder = variable("XDG_CONFIG_HOME"); folder.starts_with('/')) return folder;
  if (const auto home = variable("HOME"); home.starts_with('/'))
    return std::filesystem::path(home) / ".config";
  if (const passwd* user = ::getpwuid(::geteuid()); user != nullptr && user->pw_dir != nullptr) {
    return std::filesystem::path(user->pw_dir) / ".config";
  }
  return {};
}

// Written under a temporary name and then linked: if several ranks do this at once, one link wins
// and all read the same complete file.
Status make_key_file(const std::filesystem::path& path) {
  // Not in a directory that others can write to: they could substitute their key.
  WEFT_TRY(folder, PrivateFolder::make(path.parent_path().string()));
  const std::string partial = fmt::format("{}.{}", path.string(), hex(random_bytes(8)));
  const int file = ::open(partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return file_error(partial, errno);
  const std::string secret = new_secret() + "\n";
  const bool written = ::write(file, secret.data(), secret.size()) == static_cast<ssize_t>(secret.size());
  int error = written ? 0 : errno;
  ::close(file);
  if (written && ::link(partial.c_str(), path.c_str()) != 0 && errno != EEXIST) error = errno;
  ::unlink(partial.c_str());
  if (error != 0) return file_error(path.string(), error);
  return {};
}

}  // namespace

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t had = 0; had < count;) {
    const ssize_t came = ::getrandom(bytes.data() + had, count - had, 0);
    WEFT_CHECK(came > 0 || errno == EINTR, "the kernel returned no random bytes");
    if (came > 0) had += static_cast<std::size_t>(came);
  }
  return bytes;
}

std::string new_secret() { return hex(random_bytes(32)); }

Result<std::string> find_secret() {
  if (const auto secret = variable("WEFT_JOB_SECRET"); !secret.empty()) {
    WEFT_TRY_STATUS(check_length(std::string(secret), "WEFT_JOB_SECRET"));
    return std::string(secret);
  }
  if (const auto path = variable("WEFT_JOB_SECRET_FILE"); !path.empty())
    return read_secret_file(std::string(path));
  const auto folder = configuration_folder();
  if (!folder)
    return user_error("there is no job secret and no home directory to keep one in", "set WEFT_JOB_SECRET");
  const std::filesystem::path path = *folder / "weft" / "job_key";
  if (::access(path.c_str(), F_OK) != 0 && errno == ENOENT) WEFT_TRY_STATUS(make_key_file(path));
  return read_secret_file(path.string());
}

}  // namespace weft::transport
