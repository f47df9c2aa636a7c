#include "bare_sockets.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <span>
#include <string>

namespace weft::hosts {
namespace {

namespace tcp = transport::tcp;
using Clock = std::chrono::steady_clock;
using comm::ElementType;

constexpr std::size_t kPiece = 1 << 20;

tcp::Deadline soon() { return Clock::now() + std::chrono::seconds(60); }

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// One end of a connection: bounces single bytes, then sends or receives a stream. The client
// measures.
Result<Line> try_socket(const tcp::Socket& socket, bool calls) {
  constexpr int kBounces = 21;
  constexpr std::size_t kWarm = 48, kTimed = 32;
  const auto deadline = soon();
  std::vector<std::byte> piece(kPiece);
  const std::span<std::byte> byte(piece.data(), 1);
  std::vector<double> rounds;
  const auto bounce = [&]() -> Status {
    if (calls) WEFT_TRY_STATUS(send_all(socket, byte, deadline));
    WEFT_TRY_STATUS(receive_all(socket, byte, deadline));
    return calls ? Status() : send_all(socket, byte, deadline);
  };
  const auto stream = [&](std::size_t pieces) -> Status {
    for (std::size_t i = 0; i < pieces; ++i)
      WEFT_TRY_STATUS(calls ? send_all(socket, piece, deadline) : receive_all(socket, piece, deadline));
    return {};
  };
  for (int i = 0; i < kBounces; ++i) {
    const auto start = Clock::now();
    WEFT_TRY_STATUS(bounce());
    rounds.push_back(seconds_since(start));
  }
  std::ranges::sort(rounds);
  const double round = rounds[rounds.size() / 2];
  WEFT_TRY_STATUS(stream(kWarm));  // until the kernel has adapted to the line
  WEFT_TRY_STATUS(bounce());
  const auto start = Clock::now();
  WEFT_TRY_STATUS(stream(kTimed));
  WEFT_TRY_STATUS(bounce());
  return Line{round / 2, (seconds_since(start) - round) / static_cast<double>(kTimed * kPiece)};
}

// Connects to another leader and sends it the number of this host.
Result<tcp::Socket> call(const std::string& address, std::uint16_t port, int host) {
  WEFT_TRY(socket, tcp::connect(address, port, soon()));
  const auto number = static_cast<std::byte>(host);
  WEFT_TRY_STATUS(send_all(socket, {&number, 1}, soon()));
  return socket;
}

Status take_calls(const tcp::Socket& listener, int calls, std::vector<tcp::Socket>& by_host) {
  for (int taken = 0; taken < calls; ++taken) {
    if (!tcp::wait_for(listener, POLLIN, soon())) return environment_error("a leader did not connect");
    WEFT_TRY(socket, tcp::accept(listener));
    std::byte number{};
    WEFT_TRY_STATUS(receive_all(socket, {&number, 1}, soon()));
    by_host.at(static_cast<std::size_t>(number)) = std::move(socket);
  }
  return {};
}

}  // namespace

// The first leader's address is known. By connecting to it, the others learn their own. Each then
// connects to the leaders before it.
Result<Leaders> Leaders::connect(comm::Communicator& group, int hosts, const char* address) {
  Leaders leaders;
  const int local = group.size() / hosts;
  leaders.hosts_ = hosts;
  leaders.host_ = group.rank() / local;
  leaders.leads_ = group.rank() % local == 0;
  leaders.others_.resize(static_cast<std::size_t>(hosts));
  struct Place {
    std::array<char, 60> host{};
    std::int32_t port = 0;
  };
  static_assert(sizeof(Place) == 64);
  std::vector<Place> places(static_cast<std::size_t>(group.size()));
  tcp::Socket listener;
  const auto listen = [&](const std::string& host) -> Result<Place> {
    Place place;
    WEFT_TRY(made, tcp::listen(host, 0));
    WEFT_TRY(local_address, tcp::local_address(made));
    host.copy(place.host.data(), place.host.size() - 1);
    place.port = local_address.port();
    listener = std::move(made);
    return place;
  };
  const auto exchange = [&](const Place& mine) {
    return group.all_gather(&mine, places.data(), sizeof mine, ElementType::u8);
  };
  Place mine;
  if (group.rank() == 0) {
    WEFT_TRY(first, listen(address));
    mine = first;
  }
  WEFT_TRY_STATUS(exchange(mine));
  if (leaders.leads_ && leaders.host_ == 0) {
    WEFT_TRY_STATUS(take_calls(listener, hosts - 1, leaders.others_));
  } else if (leaders.leads_) {
    WEFT_TRY(socket, call(address, static_cast<std::uint16_t>(places[0].port), leaders.host_));
    WEFT_TRY(here, tcp::local_address(socket));
    leaders.others_[0] = std::move(socket);
    WEFT_TRY(place, listen(here.host()));
    mine = place;
  }
  WEFT_TRY_STATUS(exchange(mine));
  if (!leaders.leads_ || leaders.host_ == 0) return leaders;
  for (int host = 1; host < leaders.host_; ++host) {
    const Place& place = places[static_cast<std::size_t>(host * local)];
    WEFT_TRY(socket, call(place.host.data(), static_cast<std::uint16_t>(place.port), leaders.host_));
    leaders.others_[static_cast<std::size_t>(host)] = std::move(socket);
  }
  WEFT_TRY_STATUS(take_calls(listener, hosts - 1 - leaders.host_, leaders.others_));
  return leaders;
}

Result<Line> Leaders::try_line(comm::Communicator& group) const {
  Line line;
  if (leads_ && host_ < 2) {
    WEFT_TRY(seen, try_socket(others_[host_ == 0 ? 1 : 0], host_ == 1));
    line = seen;
  }
  std::array<double, 2> figures = {line.delay, line.seconds_per_byte};
  WEFT_TRY_STATUS(
      group.broadcast(figures.data(), figures.data(), 2, ElementType::f64, group.size() / hosts_));
  return Line{figures[0], figures[1]};
}

Status Leaders::wave(std::size_t bytes, bool from_first_alone) {
  if (!leads_) return {};
  memory_.resize(std::max(memory_.size(), 2 * bytes));
  struct Peer {
    int descriptor = -1;
    std::size_t to_send = 0, to_take = 0;
  };
  std::vector<Peer> peers;
  for (int turn = 1; turn < hosts_; ++turn) {  // each starts with its next host, so that no host is flooded
    const int other = (host_ + turn) % hosts_;
    peers.push_back({.descriptor = others_[static_cast<std::size_t>(other)].descriptor(),
                     .to_send = from_first_alone && host_ != 0 ? 0 : bytes,
                     .to_take = from_first_alone && other != 0 ? 0 : bytes});
  }
  // Moves some bytes and subtracts them from `left`; false if nothing can move now.
  const auto advance = [&](std::size_t& left, auto move) -> Result<bool> {
    if (left == 0) return false;
    const ssize_t moved = move(bytes - left, left);
    if (moved > 0) left -= static_cast<std::size_t>(moved);
    if (moved > 0) return true;
    if (moved < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    return tcp::socket_error("a leader has disconnected", errno);
  };
  for (;;) {
    bool moved = false;
    std::vector<pollfd> polled;
    for (Peer& peer : peers) {
      WEFT_TRY(sent, advance(peer.to_send, [&](std::size_t at, std::size_t left) {
                 return ::send(peer.descriptor, memory_.data() + at, left, MSG_DONTWAIT | MSG_NOSIGNAL);
               }));
      WEFT_TRY(taken, advance(peer.to_take, [&](std::size_t at, std::size_t left) {
                 return ::recv(peer.descriptor, memory_.data() + bytes + at, left, MSG_DONTWAIT);
               }));
      moved = moved || sent || taken;
      const int events = (peer.to_send > 0 ? POLLOUT : 0) | (peer.to_take > 0 ? POLLIN : 0);
      if (events != 0) polled.push_back({peer.descriptor, static_cast<short>(events), 0});
    }
    if (polled.empty()) return {};
    if (!moved && ::poll(polled.data(), polled.size(), 10'000) == 0)
      return environment_error("a leader does not respond");
  }
}

}  // namespace weft::hosts
