#include "weft/communication/transport/rendezvous.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "weft/base/sha256.h"
#include "weft/communication/transport/bootstrap.h"
#include "weft/communication/transport/secret.h"
#include "weft/communication/transport/unix_socket.h"
#include "weft/communication/transport/variable.h"

namespace weft::transport {
namespace {

constexpr std::chrono::milliseconds kNextTry{200};  // retry interval of name resolution

bool is_loopback(const tcp::Address& address) {
  if (address.storage.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address.storage);
    return ntohl(v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address.storage);
  return address.storage.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

// The local address from which packets to `address` leave. Sends nothing.
Result<std::string> source_towards(const tcp::Address& address) {
  const std::string what = fmt::format("cannot find a route to {}", address.text());
  const tcp::Socket probe(::socket(address.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe) return tcp::socket_error(what, errno);
  if (::connect(probe.descriptor(), reinterpret_cast<const sockaddr*>(&address.storage), address.length) !=
      0) {
    return tcp::socket_error(what, errno);
  }
  WEFT_TRY(source, tcp::local_address(probe));
  return source.host();
}

// The name of a host that is just starting may not resolve for a while.
Result<std::vector<tcp::Address>> resolve_in_time(const Rendezvous& rendezvous) {
  const auto deadline = std::chrono::steady_clock::now() + rendezvous.timeout;
  for (;;) {
    Result<std::vector<tcp::Address>> found = tcp::resolve(rendezvous.address, rendezvous.port);
    const auto left = deadline - std::chrono::steady_clock::now();
    if (found.ok() || left <= std::chrono::seconds(0)) return found;
    std::this_thread::sleep_for(std::min<std::chrono::steady_clock::duration>(left, kNextTry));
  }
}

Result<bool> wants_security(const Rendezvous& rendezvous) {
  bool wanted = rendezvous.secure.value_or(false);
  if (!rendezvous.secure) {
    const std::string_view text = variable("WEFT_SECURE");
    if (!text.empty() && text != "0" && text != "1")
      return user_error(fmt::format("WEFT_SECURE must be 0 or 1: '{}'", text.substr(0, 40)));
    wanted = text == "1";
  }
  if (wanted) WEFT_TRY_STATUS(check_can_seal());
  return wanted;
}

// Opens this rank's listeners and records their addresses.
Result<BootstrapPlan> prepare(const Rendezvous& rendezvous) {
  BootstrapPlan plan{{rendezvous.rank, rendezvous.ranks, {}, {}}, {}, rendezvous.secret, rendezvous.timeout};
  WEFT_TRY(secure, wants_security(rendezvous));
  if (secure) plan.traffic = Traffic::sealed;
  WEFT_TRY(host, host_identity());
  plan.self.door = "weft-" + hex(random_bytes(16));
  WEFT_TRY(door, listen_unix(plan.self.door));
  plan.doors.local = std::move(door);
  plan.self.member = {host, "127.0.0.1:0", ::getpid()};
  if (rendezvous.address.empty() || rendezvous.ranks == 1) return plan;

  WEFT_TRY(addresses, resolve_in_time(rendezvous));
  if (rendezvous.listen.empty() && is_loopback(addresses.front())) {
    plan.self.member.address = tcp::print({addresses.front().host(), 0});
    return plan;
  }
  std::string here = rendezvous.listen;
  const bool anywhere = here == "0.0.0.0" || here == "::";
  if (here.empty() || anywhere) {
    WEFT_TRY(source, source_towards(addresses.front()));
    here = source;
  }
  WEFT_TRY(listener, tcp::listen(anywhere ? rendezvous.listen : here, 0));
  WEFT_TRY(bound, tcp::local_address(listener));
  plan.self.member.address = tcp::print({anywhere ? here : bound.host(), bound.port()});
  plan.doors.remote = std::move(listener);
  return plan;
}

std::string meeting_name(const Rendezvous& rendezvous) {
  // Derived from the secret: other users of this machine cannot know it and take it first.
  const Sha256 name = hmac_sha256(rendezvous.secret, "meeting " + rendezvous.name);
  return "weft-meet-" + hex(bytes_of(name)).substr(0, 32);
}

Result<tcp::Socket> open_meeting(const Rendezvous& rendezvous, tcp::Socket handed_down) {
  if (handed_down) {
    ::fcntl(handed_down.descriptor(), F_SETFD, FD_CLOEXEC);
    ::fcntl(handed_down.descriptor(), F_SETFL, O_NONBLOCK);
    return handed_down;
  }
  if (rendezvous.address.empty()) return listen_unix(meeting_name(rendezvous));
  return tcp::listen(rendezvous.listen.empty() ? rendezvous.address : rendezvous.listen, rendezvous.port);
}

Dial dial_meeting(const Rendezvous& rendezvous) {
  if (rendezvous.address.empty()) {
    return [name = meeting_name(rendezvous)](std::int32_t) -> Result<DialResult> {
      WEFT_TRY(socket, connect_unix(name));
      return DialResult{std::move(socket), {}};
    };
  }
  return [host = rendezvous.address, port = rendezvous.port](std::int32_t attempt) -> Result<DialResult> {
    WEFT_TRY(addresses, tcp::resolve(host, port));
    const tcp::Address& address = addresses[static_cast<std::size_t>(attempt) % addresses.size()];
    WEFT_TRY(socket, tcp::start_connect(address));
    return DialResult{std::move(socket), address};
  };
}

Status check(const Rendezvous& rendezvous) {
  if (rendezvous.ranks < 1 || rendezvous.rank < 0 || rendezvous.rank >= rendezvous.ranks) {
    return user_error(fmt::format("there is no rank {} of {}", rendezvous.rank, rendezvous.ranks));
  }
  if (rendezvous.secret.empty() && rendezvous.ranks > 1) {
    return user_error("ranks cannot connect without a secret", "set WEFT_JOB_SECRET");
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Job>> join(const Rendezvous& rendezvous) {
  tcp::Socket handed_down(rendezvous.listener);
  WEFT_TRY_STATUS(check(rendezvous));
  WEFT_TRY(plan, prepare(rendezvous));
  if (rendezvous.ranks == 1) {
    return make_process_job({0, {plan.self.member}, {}, rendezvous.secret, rendezvous.timeout, plan.traffic});
  }
  const bool local = rendezvous.address.empty();
  if (rendezvous.rank == 0) {
    WEFT_TRY(listener, open_meeting(rendezvous, std::move(handed_down)));
    WEFT_TRY(circle, bootstrap_root(std::move(plan), std::move(listener), local));
    return make_process_job(std::move(circle));
  }
  const std::string where =
      local ? "@" + meeting_name(rendezvous) : tcp::print({rendezvous.address, rendezvous.port});
  WEFT_TRY(circle, bootstrap_client(std::move(plan), dial_meeting(rendezvous), where));
  return make_process_job(std::move(circle));
}

}  // namespace weft::transport
