// weft/communication/transport/tcp/socket.h -- RAII sockets that never block, with descriptive
// errors.
//
//   WEFT_TRY(listener, listen("127.0.0.1", 0));         // 0: the kernel chooses a port
//   WEFT_TRY(address, local_address(listener));         // 127.0.0.1:41234
//   WEFT_TRY(socket, connect("127.0.0.1", 41234, deadline));
//   WEFT_TRY(arrived, accept(listener));                // no connection: an empty Socket
//
// Every socket created here is non-blocking, close-on-exec, and sends without delay (TCP_NODELAY).
// Functions with a deadline wait at most until then; the others return at once. Resolving a name
// blocks as long as the system's resolver does; numeric addresses are not looked up.
#pragma once
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/result.h"

namespace weft::transport::tcp {

using Deadline = std::chrono::steady_clock::time_point;

// A timeout for poll(): milliseconds until the deadline, rounded up, 0 once it has passed.
int milliseconds_until(Deadline deadline);

class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}  // takes ownership
  ~Socket() { close(); }
  Socket(Socket&& other) noexcept : descriptor_(other.release()) {}
  Socket& operator=(Socket&& other) noexcept;

  int descriptor() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }
  int release() { return std::exchange(descriptor_, -1); }
  void close();

 private:
  int descriptor_ = -1;
};

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;

  std::string text() const;  // "127.0.0.1:41234", "[::1]:41234"
  std::string host() const;  // "127.0.0.1", "::1", "fe80::1%eth0"
  std::uint16_t port() const;
};

struct HostPort {
  std::string host;
  std::uint16_t port = 0;

  friend bool operator==(const HostPort&, const HostPort&) = default;
};
// Parses "127.0.0.1:41234", "[::1]:41234", "node7:29500".
Result<HostPort> parse_host_port(std::string_view text);
std::string print(const HostPort& address);

// All addresses of a name, in the system's order of preference; at least one.
Result<std::vector<Address>> resolve(const std::string& host, std::uint16_t port);

// `backlog`: how many connections may wait to be accepted.
Result<Socket> listen(const std::string& host, std::uint16_t port, int backlog = 1024);
Result<Address> local_address(const Socket& socket);
Result<Address> remote_address(const Socket& socket);

// The next pending connection; an empty Socket if there is none. Fails only if the listener is
// unusable, or if this process or machine has no descriptors left.
Result<Socket> accept(const Socket& listener);

// Tries each address of the name until one answers. Fails at the deadline, or when all of them
// refuse.
Result<Socket> connect(const std::string& host, std::uint16_t port, Deadline deadline);
// Starts to connect; the socket becomes writable when that succeeds or fails. Then finish_connect()
// returns the result.
Result<Socket> start_connect(const Address& address);
Status finish_connect(const Socket& socket, const Address& address);

// Waits for `events` of poll(2) or an error; false at the deadline.
bool wait_for(const Socket& socket, short events, Deadline deadline);

// Sends or receives all bytes. Fails at the deadline, or when the peer closes the connection.
Status send_all(const Socket& socket, std::span<const std::byte> bytes, Deadline deadline);
Status receive_all(const Socket& socket, std::span<std::byte> bytes, Deadline deadline);

// Sets the kernel's buffer size per direction. The kernel may use less.
void set_buffers(const Socket& socket, std::int32_t bytes);

// A system error; `what` is the operation, "cannot connect to 10.0.0.7:29500".
Error socket_error(std::string_view what, int code);

}  // namespace weft::transport::tcp
