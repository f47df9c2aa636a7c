// weft/communication/transport/peer_memory.h -- reads another rank's memory if the kernel permits
// it (cross-memory attach).
//
//   rank 0: card {process 4711, address 0xffff9000, token}  ──▶  rank 1: is the token there? then read on
//
// In containers a pid may identify a different process to the reader. So a rank reads another's
// memory only after it has found that rank's token at the address on its card. Threads of one
// process copy. Processes use process_vm_readv, which needs ptrace permission. Without it, read()
// returns false and nothing else happens.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft::transport {

class PeerMemory {
 public:
  PeerMemory();

  // What other ranks need in order to read this rank's memory; text when sent in a message.
  struct Card {
    std::int64_t process = 0;
    std::uint64_t address = 0, token = 0;
  };
  Card introduction() const;
  std::string card() const;
  // Probes the cards of all ranks, in rank order.
  Status meet(std::span<const std::string_view> cards);
  void meet(const Card& next);

  // Whether the memory of that rank can be read.
  bool reaches(std::int32_t rank) const;
  // Copies from `address` of that rank; false if that is not possible.
  bool read(std::int32_t rank, std::uint64_t address, std::span<std::byte> target) const;

 private:
  enum class Reach : std::uint8_t { none, thread, process };
  struct Peer {
    std::int64_t process = 0;
    Reach reach = Reach::none;
  };
  static Reach probe(const Card& card);

  std::unique_ptr<std::uint64_t> token_;
  std::vector<Peer> peers_;
};

}  // namespace weft::transport
