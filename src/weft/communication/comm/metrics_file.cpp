#include "weft/communication/comm/metrics_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "weft/communication/transport/variable.h"

namespace weft::comm {

Status write_private_file(const std::string& path, std::string_view text) {
  const std::string partial = fmt::format("{}.{}.partial", path, ::getpid());
  const auto failed = [&](int code) {
    return environment_error(fmt::format("cannot write {}: {}", path, std::strerror(code)));
  };
  ::unlink(partial.c_str());  // left by a killed process with the same pid
  const int file = ::open(partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return failed(errno);
  int code = 0;
  while (!text.empty() && code == 0) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno != EINTR) code = errno;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  ::close(file);
  if (code == 0 && ::rename(partial.c_str(), path.c_str()) != 0) code = errno;
  if (code == 0) return {};
  ::unlink(partial.c_str());
  return failed(code);
}

std::unique_ptr<MetricsFile> MetricsFile::from_environment(std::int32_t rank,
                                                           std::function<std::string()> print) {
  const std::string directory(transport::variable("WEFT_METRICS"));
  if (directory.empty()) return nullptr;
  ::mkdir(directory.c_str(), 0700);  // may already exist
  return std::make_unique<MetricsFile>(fmt::format("{}/weft_rank_{}.prom", directory, rank), std::move(print),
                                       kEvery);
}

MetricsFile::MetricsFile(std::string path, std::function<std::string()> print,
                         std::chrono::milliseconds every)
    : path_(std::move(path)), print_(std::move(print)), thread_([this, every] { run(every); }) {}

MetricsFile::~MetricsFile() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void MetricsFile::run(std::chrono::milliseconds every) {
  std::string written;
  std::unique_lock lock(mutex_);
  for (bool last = false;;) {
    lock.unlock();
    if (std::string text = print_(); text != written && write_private_file(path_, text).ok())
      written = std::move(text);
    lock.lock();
    if (last) return;
    changed_.wait_for(lock, every, [this] { return over_; });
    last = over_;
  }
}

}  // namespace weft::comm
