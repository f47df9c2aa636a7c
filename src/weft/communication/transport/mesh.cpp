#include "weft/communication/transport/mesh.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/communication/transport/unix_socket.h"

namespace weft::transport {
namespace {

Dial dial_door(std::string door) {
  return [door = std::move(door)](std::int32_t) -> Result<DialResult> {
    WEFT_TRY(socket, connect_unix(door));
    return DialResult{std::move(socket), {}};
  };
}

Dial dial_address(std::string text) {
  return [text = std::move(text)](std::int32_t) -> Result<DialResult> {
    WEFT_TRY(where, tcp::parse_host_port(text));
    WEFT_TRY(addresses, tcp::resolve(where.host, where.port));
    WEFT_TRY(socket, tcp::start_connect(addresses.front()));
    return DialResult{std::move(socket), addresses.front()};
  };
}

// The key of links to a listener, which both ends derive from the table.
std::string key_of_lines_to(const BootstrapMember& listener, std::string_view key) {
  return bound_to(fmt::format("rank {} at {} and {}", listener.rank, listener.member.address, listener.door),
                  key);
}

}  // namespace

Mesh::Mesh(std::int32_t rank, const Table& table, std::string_view key, Traffic traffic, MeshListeners doors)
    : rank_(rank),
      acceptor_(key_of_lines_to(table.attendees[static_cast<std::size_t>(rank)], key), traffic),
      lines_(table.attendees.size()) {
  for (const BootstrapMember& each : table.attendees) hosts_.push_back(each.member.host);
  acceptor_.open(std::move(doors.local), true);
  if (doors.remote) acceptor_.open(std::move(doors.remote), false);
  for (std::int32_t below = 0; below < rank; ++below) {
    const BootstrapMember& other = table.attendees[static_cast<std::size_t>(below)];
    const bool local = other.member.host == hosts_[static_cast<std::size_t>(rank)];
    calls_.emplace_back(local ? dial_door(other.door) : dial_address(other.member.address),
                        key_of_lines_to(other, key), traffic,
                        fmt::format("rank {} at {}", below, local ? "@" + other.door : other.member.address));
  }
}

void Mesh::add_to(std::vector<pollfd>& wanted) const {
  acceptor_.add_to(wanted);
  for (const Client& call : calls_) call.add_to(wanted);
}

Status Mesh::step() {
  for (std::size_t below = 0; below < calls_.size(); ++below) {
    if (lines_[below]) continue;
    const Client::State state = calls_[below].step();
    if (state == Client::State::refused) return calls_[below].error();
    if (state != Client::State::through) continue;
    lines_[below] = calls_[below].take_line();
    lines_[below].send(FrameKind::link, 0, static_cast<std::uint64_t>(rank_), {});
  }
  WEFT_TRY(guests, acceptor_.step());
  for (Acceptor::AcceptedLink& guest : guests) let_in(std::move(guest));
  return {};
}

void Mesh::let_in(Acceptor::AcceptedLink guest) {
  const std::uint64_t rank = guest.first.number;
  if (guest.first.kind != FrameKind::link || rank <= static_cast<std::uint64_t>(rank_) ||
      rank >= lines_.size())
    return;
  const bool same_host = hosts_[rank] == hosts_[static_cast<std::size_t>(rank_)];
  // A client that connects again has lost its first link before it learned that it was established.
  if (same_host == guest.line.local()) lines_[rank] = std::move(guest.line);
}

bool Mesh::complete() const { return missing().empty(); }

std::vector<std::int32_t> Mesh::missing() const {
  std::vector<std::int32_t> out;
  for (std::size_t rank = 0; rank < lines_.size(); ++rank) {
    if (!lines_[rank] && rank != static_cast<std::size_t>(rank_))
      out.push_back(static_cast<std::int32_t>(rank));
  }
  return out;
}

std::string Mesh::why_missing(std::int32_t rank) const {
  return rank < rank_ ? calls_[static_cast<std::size_t>(rank)].error().message : std::string();
}

Deadline Mesh::next_try() const {
  Deadline next = Deadline::max();
  for (std::size_t below = 0; below < calls_.size(); ++below) {
    if (!lines_[below]) next = std::min(next, calls_[below].next_try());
  }
  return next;
}

}  // namespace weft::transport
