#include "weft/communication/transport/unix_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include <fmt/format.h>

#include "weft/base/file.h"
#include "weft/communication/transport/variable.h"

namespace weft::transport {
namespace {

constexpr int kBacklog = 4096;

struct AbstractName {
  sockaddr_un address = {};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

// An abstract name begins with a zero byte and is not null-terminated.
Result<AbstractName> abstract(const std::string& name) {
  AbstractName out;
  out.address.sun_family = AF_UNIX;
  if (name.size() + 1 > sizeof out.address.sun_path) {
    return user_error(fmt::format("a socket's name is too long: {} characters, at most {}", name.size(),
                                  sizeof out.address.sun_path - 1));
  }
  std::ranges::copy(name, out.address.sun_path + 1);
  out.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return out;
}

Result<tcp::Socket> make_socket(std::string_view what) {
  tcp::Socket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return tcp::socket_error(what, errno);
  return socket;
}

}  // namespace

Result<tcp::Socket> listen_unix(const std::string& name) {
  const std::string what = fmt::format("cannot listen on the Unix socket @{}", name);
  WEFT_TRY(address, abstract(name));
  WEFT_TRY(socket, make_socket(what));
  if (::bind(socket.descriptor(), address.get(), address.length) != 0 ||
      ::listen(socket.descriptor(), kBacklog) != 0) {
    return tcp::socket_error(what, errno);
  }
  return socket;
}

Result<tcp::Socket> connect_unix(const std::string& name) {
  const std::string what = fmt::format("cannot connect to the Unix socket @{}", name);
  WEFT_TRY(address, abstract(name));
  WEFT_TRY(socket, make_socket(what));
  if (::connect(socket.descriptor(), address.get(), address.length) != 0)
    return tcp::socket_error(what, errno);
  return socket;
}

bool is_same_user(const tcp::Socket& socket) {
  ucred other = {};
  socklen_t length = sizeof other;
  if (::getsockopt(socket.descriptor(), SOL_SOCKET, SO_PEERCRED, &other, &length) != 0) return false;
  return other.uid == 0 || other.uid == ::geteuid();
}

Result<std::string> host_identity() {
  WEFT_TRY(boot, read_file("/proc/sys/kernel/random/boot_id", 100));
  while (!boot.empty() && boot.back() == '\n') boot.pop_back();
  struct stat space = {};
  if (::stat("/proc/self/ns/net", &space) != 0)
    return tcp::socket_error("cannot identify this network namespace", errno);
  const std::string_view named = variable("WEFT_HOST");
  return fmt::format("{}/{}{}{}", boot, space.st_ino, named.empty() ? "" : "/", named);
}

}  // namespace weft::transport
