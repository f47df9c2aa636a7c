#include "weft/communication/transport/tcp/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "weft/base/number.h"

namespace weft::transport::tcp {

namespace {

constexpr int kNonBlocking = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

void switch_on(const Socket& socket, int level, int option) {
  const int on = 1;
  ::setsockopt(socket.descriptor(), level, option, &on, sizeof on);
}

const sockaddr* as_sockaddr(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address.storage);
}

template <class Ask>
Result<Address> ask_address(const Socket& socket, Ask ask, std::string_view what) {
  Address address;
  address.length = sizeof address.storage;
  if (ask(socket.descriptor(), reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0)
    return socket_error(what, errno);
  return address;
}

std::string hint_for(int code) {
  switch (code) {
    case ECONNREFUSED: return "is the other rank running, and is this the address it listens on?";
    case ENETUNREACH:
    case EHOSTUNREACH: return "is the address reachable from this host? WEFT_LISTEN sets another";
    case EADDRNOTAVAIL:
      return "the address is not one of this machine's, or no local port is free: see "
             "net.ipv4.ip_local_port_range";
    case EADDRINUSE: return "another program listens there: choose another port";
    case EMFILE: return "raise the per-process limit on open files: ulimit -n";
    case ENFILE: return "the machine ran out of open files: see fs.file-max";
    default: return {};
  }
}

std::string words_for(int code) {
  switch (code) {
    case ECONNREFUSED: return "no process listens there";
    case ECONNRESET:
    case EPIPE: return "the peer closed the connection";
    case ETIMEDOUT: return "no answer in time";
    case ENETUNREACH:
    case EHOSTUNREACH: return "no route";
    case EADDRNOTAVAIL: return "address or port not available";
    case EADDRINUSE: return "address in use";
    case EMFILE:
    case ENFILE: return "too many open files";
    case ENOBUFS:
    case ENOMEM: return "out of memory for sockets";
    default: return std::generic_category().message(code);
  }
}

}  // namespace

int milliseconds_until(Deadline deadline) {
  using std::chrono::ceil, std::chrono::milliseconds;
  const auto left = ceil<milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000'000));
}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    close();
    descriptor_ = other.release();
  }
  return *this;
}

void Socket::close() {
  if (descriptor_ >= 0) ::close(release());
}

std::string Address::host() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (storage.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
    return ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text) ? text : "";
  }
  if (storage.ss_family != AF_INET6) return {};
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
  if (!::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text)) return {};
  char interface[IF_NAMESIZE] = "";
  if (v6.sin6_scope_id != 0 && ::if_indextoname(v6.sin6_scope_id, interface))
    return fmt::format("{}%{}", text, interface);
  return text;
}

std::uint16_t Address::port() const {
  if (storage.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port);
  if (storage.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(storage).sin6_port);
  return 0;
}

std::string Address::text() const { return print(HostPort{host(), port()}); }

std::string print(const HostPort& address) {
  if (address.host.find(':') != std::string::npos) return fmt::format("[{}]:{}", address.host, address.port);
  return fmt::format("{}:{}", address.host, address.port);
}

Result<HostPort> parse_host_port(std::string_view text) {
  const auto wrong = [&] {
    return user_error(fmt::format("expected an address and port, found '{}'", text.substr(0, 100)),
                      "write 127.0.0.1:29500, [::1]:29500 or name:29500");
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong();
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']'))
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos)
    return wrong();
  const auto port = read_number<std::uint16_t>(digits);
  if (host.empty() || !port) return wrong();
  return HostPort{std::string(host), *port};
}

Result<std::vector<Address>> resolve(const std::string& host, std::uint16_t port) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failure = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found);
  if (failure != 0)
    return environment_error(fmt::format("cannot find the address of '{}': {}", host.substr(0, 255),
                                         failure == EAI_SYSTEM ? words_for(errno) : ::gai_strerror(failure)));
  std::vector<Address> addresses;
  for (const addrinfo* one = found; one; one = one->ai_next) {
    Address& address = addresses.emplace_back();
    std::memcpy(&address.storage, one->ai_addr, one->ai_addrlen);
    address.length = one->ai_addrlen;
  }
  ::freeaddrinfo(found);
  return addresses;
}

Result<Socket> listen(const std::string& host, std::uint16_t port, int backlog) {
  WEFT_TRY(addresses, resolve(host, port));
  const Address& address = addresses.front();
  const std::string what = fmt::format("cannot listen on {}", address.text());
  Socket socket(::socket(address.storage.ss_family, kNonBlocking, 0));
  if (!socket) return socket_error(what, errno);
  // A fixed port may be needed again right after the last job ended.
  if (port != 0) switch_on(socket, SOL_SOCKET, SO_REUSEADDR);
  if (::bind(socket.descriptor(), as_sockaddr(address), address.length) != 0 ||
      ::listen(socket.descriptor(), backlog) != 0)
    // For an ephemeral port, EADDRINUSE does not mean another program: there is no port left.
    return socket_error(what, port == 0 && errno == EADDRINUSE ? EADDRNOTAVAIL : errno);
  return socket;
}

Result<Address> local_address(const Socket& socket) {
  return ask_address(socket, ::getsockname, "cannot get a socket's own address");
}

Result<Address> remote_address(const Socket& socket) {
  return ask_address(socket, ::getpeername, "cannot get the address of a socket's peer");
}

Result<Socket> accept(const Socket& listener) {
  for (;;) {
    Socket socket(::accept4(listener.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket) {
      switch_on(socket, IPPROTO_TCP, TCP_NODELAY);
      return socket;
    }
    switch (errno) {
      case EBADF:
      case EINVAL:
      case ENOTSOCK:
      case EMFILE:
      case ENFILE:
      case ENOBUFS:
      case ENOMEM: return socket_error("cannot accept a connection", errno);
      case EAGAIN: return Socket();
      default: break;  // already disconnected: try the next one
    }
  }
}

Result<Socket> start_connect(const Address& address) {
  Socket socket(::socket(address.storage.ss_family, kNonBlocking, 0));
  if (!socket) return socket_error(fmt::format("cannot connect to {}", address.text()), errno);
  switch_on(socket, IPPROTO_TCP, TCP_NODELAY);
  if (::connect(socket.descriptor(), as_sockaddr(address), address.length) != 0 && errno != EINPROGRESS &&
      errno != EINTR)
    return socket_error(fmt::format("cannot connect to {}", address.text()), errno);
  return socket;
}

Status finish_connect(const Socket& socket, const Address& address) {
  int code = 0;
  socklen_t length = sizeof code;
  if (::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &code, &length) != 0) code = errno;
  if (code != 0) return socket_error(fmt::format("cannot connect to {}", address.text()), code);
  return {};
}

Result<Socket> connect(const std::string& host, std::uint16_t port, Deadline deadline) {
  WEFT_TRY(addresses, resolve(host, port));
  Error last;
  for (const Address& address : addresses) {
    auto socket = start_connect(address);
    if (socket.ok()) {
      if (!wait_for(*socket, POLLOUT, deadline))
        return socket_error(fmt::format("cannot connect to {}", address.text()), ETIMEDOUT);
      const Status status = finish_connect(*socket, address);
      if (status.ok()) return socket;
      last = status.error();
    } else {
      last = socket.error();
    }
  }
  return last;
}

bool wait_for(const Socket& socket, short events, Deadline deadline) {
  pollfd waiting{socket.descriptor(), events, 0};
  for (;;) {
    const int ready = ::poll(&waiting, 1, milliseconds_until(deadline));
    if (ready != 0 && !(ready < 0 && errno == EINTR)) return true;
    if (std::chrono::steady_clock::now() >= deadline) return false;
  }
}

Status send_all(const Socket& socket, std::span<const std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      if (!wait_for(socket, POLLOUT, deadline)) return socket_error("cannot send", ETIMEDOUT);
    } else if (errno != EINTR) {
      return socket_error("cannot send", errno);
    }
  }
  return {};
}

Status receive_all(const Socket& socket, std::span<std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t received = ::recv(socket.descriptor(), bytes.data(), bytes.size(), 0);
    if (received > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(received));
    } else if (received == 0) {
      return socket_error("cannot receive", ECONNRESET);
    } else if (errno == EAGAIN) {
      if (!wait_for(socket, POLLIN, deadline)) return socket_error("cannot receive", ETIMEDOUT);
    } else if (errno != EINTR) {
      return socket_error("cannot receive", errno);
    }
  }
  return {};
}

void set_buffers(const Socket& socket, std::int32_t bytes) {
  ::setsockopt(socket.descriptor(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  ::setsockopt(socket.descriptor(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

Error socket_error(std::string_view what, int code) {
  return environment_error(fmt::format("{}: {}", what, words_for(code)), hint_for(code));
}

}  // namespace weft::transport::tcp
