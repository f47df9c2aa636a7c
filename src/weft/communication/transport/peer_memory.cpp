#include "weft/communication/transport/peer_memory.h"

#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstring>

#include "weft/base/hash.h"

namespace weft::transport {
namespace {

bool read_from_process(std::int64_t process, std::uint64_t address, std::span<std::byte> target) {
  while (!target.empty()) {
    const iovec ours{target.data(), target.size()};
    const iovec theirs{reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), target.size()};
    const ssize_t copied = process_vm_readv(static_cast<pid_t>(process), &ours, 1, &theirs, 1, 0);
    if (copied <= 0) return false;
    target = target.subspan(static_cast<std::size_t>(copied));
    address += static_cast<std::uint64_t>(copied);
  }
  return true;
}

// Parses the next number of a card; false at the end or if it is not a number.
template <class Number>
bool take_number(std::string_view& text, Number& number) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.starts_with(' ')) text.remove_prefix(1);
  return true;
}

}  // namespace

PeerMemory::PeerMemory() : token_(std::make_unique<std::uint64_t>()) {
  // Not secret: it must only be unlikely to occur by chance.
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  *token_ = Hasher()
                .number(static_cast<std::uint64_t>(now))
                .number(static_cast<std::uint64_t>(getpid()))
                .number(reinterpret_cast<std::uintptr_t>(token_.get()))
                .digest()
                .low;
}

PeerMemory::Card PeerMemory::introduction() const {
  return {.process = getpid(), .address = reinterpret_cast<std::uintptr_t>(token_.get()), .token = *token_};
}

std::string PeerMemory::card() const {
  const Card own = introduction();
  return fmt::format("{} {} {}", own.process, own.address, own.token);
}

Status PeerMemory::meet(std::span<const std::string_view> cards) {
  for (std::string_view text : cards) {
    Card card;
    if (!take_number(text, card.process) || !take_number(text, card.address) ||
        !take_number(text, card.token))
      return environment_error(fmt::format("rank {} sent an unknown handshake", peers_.size()));
    meet(card);
  }
  return {};
}

void PeerMemory::meet(const Card& next) { peers_.push_back({next.process, probe(next)}); }

PeerMemory::Reach PeerMemory::probe(const Card& card) {
  // Through the kernel even for our own process: a wrong address is then an error instead of a
  // crash.
  std::uint64_t found = 0;
  if (!read_from_process(card.process, card.address, std::as_writable_bytes(std::span(&found, 1))))
    return Reach::none;
  if (found != card.token) return Reach::none;
  return card.process == getpid() ? Reach::thread : Reach::process;
}

bool PeerMemory::reaches(std::int32_t rank) const {
  const auto index = static_cast<std::size_t>(rank);
  return index < peers_.size() && peers_[index].reach != Reach::none;
}

bool PeerMemory::read(std::int32_t rank, std::uint64_t address, std::span<std::byte> target) const {
  if (!reaches(rank)) return false;
  const Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (peer.reach == Reach::process) return read_from_process(peer.process, address, target);
  std::memcpy(target.data(), reinterpret_cast<const void*>(static_cast<std::uintptr_t>(address)),
              target.size());
  return true;
}

}  // namespace weft::transport
