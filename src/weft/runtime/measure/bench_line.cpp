#include "weft/runtime/measure/bench_line.h"

#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "weft/runtime/measure/bench_turn.h"

namespace weft::measure {
namespace {

struct Address {
  sockaddr_un where{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&where); }
};

// An abstract address: the first byte stays 0.
Address abstract(std::string_view name) {
  Address address;
  address.where.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof address.where.sun_path - 1);
  std::memcpy(address.where.sun_path + 1, name.data(), length);
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return address;
}

std::string reason() { return std::strerror(errno); }

}  // namespace

Result<BenchLine> BenchLine::connect(std::string_view name) {
  const int made = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made < 0) return environment_error("cannot create a socket for the bench: " + reason());
  BenchLine line(made);
  const Address address = abstract(name);
  if (::connect(made, address.get(), address.size) != 0)
    return environment_error(fmt::format("no bench listens at {}: {}", name, reason()));
  return line;
}

BenchLine::~BenchLine() {
  if (socket_ >= 0) close(socket_);
}

BenchLine::BenchLine(BenchLine&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), received_(std::move(other.received_)) {}

BenchLine& BenchLine::operator=(BenchLine&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(received_, other.received_);
  return *this;
}

bool BenchLine::write(std::string_view text) {
  std::string line(text);
  line += '\n';
  for (std::size_t at = 0; at < line.size();) {
    const ssize_t sent = send(socket_, line.data() + at, line.size() - at, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += static_cast<std::size_t>(sent);
  }
  return true;
}

bool BenchLine::receive() {
  if (received_.size() > kMostBenchLine) return false;
  std::array<char, 4096> piece{};
  while (true) {
    const ssize_t count = recv(socket_, piece.data(), piece.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    received_.append(piece.data(), static_cast<std::size_t>(count));
    return true;
  }
}

std::optional<std::string> BenchLine::next() {
  const std::size_t end = received_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return line;
}

std::optional<std::string> BenchLine::read() {
  while (true) {
    if (auto line = next()) return line;
    if (!receive()) return std::nullopt;
  }
}

Result<BenchListener> BenchListener::open() {
  std::array<std::uint64_t, 2> random{};
  if (getrandom(random.data(), sizeof random, 0) != static_cast<ssize_t>(sizeof random))
    return environment_error("no random numbers: " + reason());
  std::string name = fmt::format("weft-bench-{:016x}{:016x}", random[0], random[1]);
  const int made = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made < 0) return environment_error("no socket for the bench: " + reason());
  BenchListener listener(made, std::move(name));
  const Address address = abstract(listener.name_);
  if (bind(made, address.get(), address.size) != 0 || listen(made, 128) != 0)
    return environment_error("cannot listen for the ranks of the bench: " + reason());
  return listener;
}

BenchListener::~BenchListener() {
  if (socket_ >= 0) close(socket_);
}

BenchListener::BenchListener(BenchListener&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), name_(std::move(other.name_)) {}

std::optional<BenchListener::Client> BenchListener::accept() {
  while (true) {
    const int made = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (made < 0 && errno == EINTR) continue;
    if (made < 0) return std::nullopt;
    BenchLine line(made);
    ucred who{};
    socklen_t size = sizeof who;
    if (getsockopt(made, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || who.uid != getuid()) continue;
    // A client must send its hello promptly.
    const timeval patience{5, 0};
    setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return Client{std::move(line), who.pid};
  }
}

}  // namespace weft::measure
