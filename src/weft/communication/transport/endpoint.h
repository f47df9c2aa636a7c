// weft/communication/transport/endpoint.h -- one rank's end of a transport: opens connections, waits for any of them.
//
//   inproc   threads of one process          tcp   sockets, across machines
//   shm      processes of one machine        mpi   whatever an MPI that already runs uses
//
// A group has one endpoint at each of its ranks. Ranks here are positions in the group.
//
//   // every rank, the same list
//   auto [outgoing, incoming] = endpoint->open({{0, 1, 0}, {1, 0, 0}}, capacity);
//   for (;;) {
//     const auto seen = endpoint->signal();
//     if (outgoing[0]->send_from(bytes)) break;    // or anything else
//     endpoint->wait(seen, 100ms);                 // then look again
//   }
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/transport/connection.h"

namespace weft::transport {

// (sender, receiver, channel) names a connection, as in chunk programs.
struct Wire {
  std::int32_t from = 0, to = 0, channel = 0;

  friend auto operator<=>(const Wire&, const Wire&) = default;
};

// This rank's ends, in the order of the wires that were asked for; null where it has no part in one.
struct Ends {
  std::vector<std::unique_ptr<Outgoing>> outgoing;
  std::vector<std::unique_ptr<Incoming>> incoming;
};

// A message that is not what its receiver expects. Nothing more is taken from that connection.
struct WireFault {
  Wire wire;
  enum class What : std::uint8_t {
    damaged,     // the bytes are not those that were sent
    other_call,  // label or length are those of another call
    closed       // the peer closed the connection; the job knows more
  };
  What what = What::damaged;
  std::string text;  // "a frame of rank 2 is damaged: checksum 0x1234, expected 0x5678"
};

// Exchanges that endpoints make among their group (see Topic in job.h) have numbers from here on.
inline constexpr std::uint64_t kEndpointTopics = std::uint64_t{1} << 63;

class Endpoint {
 public:
  virtual ~Endpoint() = default;

  virtual std::string_view transport() const = 0;  // "shm"
  virtual std::int32_t rank() const = 0;
  virtual std::int32_t ranks() const = 0;

  // Opens all wires at once. Collective: every rank of the group gives the same list and capacity. Fails,
  // naming the rank, when one of them died or did not come within the job's timeout.
  virtual Result<Ends> open(std::span<const Wire> wires, const Capacity& capacity) = 0;

  // Moves what moves by itself (sockets); false when nothing did. Cheap where there is nothing to do.
  virtual bool progress() = 0;

  // Changes whenever something that this rank may be waiting for has happened. Read it, find that nothing
  // can go on, then wait() for it to change: what happens in between is not missed.
  virtual std::uint32_t signal() = 0;
  // Returns when signal() is no longer `seen`, when wake() is called, or after `patience`. Spins, yields and
  // sleeps in this order: see doorbell.h.
  virtual void wait(std::uint32_t seen, std::chrono::nanoseconds patience) = 0;
  virtual void wake() = 0;  // from any thread

  // What is wrong with a connection, if anything.
  virtual std::optional<WireFault> fault() = 0;
};

}  // namespace weft::transport
