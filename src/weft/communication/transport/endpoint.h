// weft/communication/transport/endpoint.h -- one rank's end of a transport: opens connections, and
// waits for any of them.
//
//   inproc   threads of one process          tcp   sockets, across machines
//   shm      processes of one machine        mpi   an MPI library that is already running
//
// A group has one endpoint at each of its ranks. Ranks here are positions in the group.
//
//   // every rank, the same list
//   auto [outgoing, incoming] = endpoint->open({{0, 1, 0}, {1, 0, 0}}, capacity);
//   for (;;) {
//     const auto seen = endpoint->signal();
//     if (outgoing[0]->send_from(bytes)) break;    // or anything else
//     endpoint->wait(seen, 100ms);                 // then check again
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

// (sender, receiver, channel) identifies a connection, as in chunk programs.
struct Wire {
  std::int32_t from = 0, to = 0, channel = 0;

  friend auto operator<=>(const Wire&, const Wire&) = default;
};

// This rank's ends, in the order of the requested wires; null for a wire between other ranks.
struct Ends {
  std::vector<std::unique_ptr<Outgoing>> outgoing;
  std::vector<std::unique_ptr<Incoming>> incoming;
};

// A message that its receiver does not expect. The connection delivers nothing afterwards.
struct WireFault {
  Wire wire;
  enum class What : std::uint8_t {
    damaged,     // the data was corrupted
    other_call,  // the label or length belongs to another call
    closed       // the peer closed the connection; the job knows why
  };
  What what = What::damaged;
  std::string text;  // "a frame of rank 2 is damaged: checksum 0x1234, expected 0x5678"
};

// Exchanges of endpoints among their group (see Topic in job.h) are numbered from here.
inline constexpr std::uint64_t kEndpointTopics = std::uint64_t{1} << 63;

class Endpoint {
 public:
  virtual ~Endpoint() = default;

  virtual std::string_view transport() const = 0;  // "shm"
  virtual std::int32_t rank() const = 0;
  virtual std::int32_t ranks() const = 0;

  // Opens all wires at once. Collective: every rank of the group passes the same list and capacity.
  // Fails with the name of a rank that failed or did not join within the job's timeout.
  virtual Result<Ends> open(std::span<const Wire> wires, const Capacity& capacity) = 0;

  // Progresses transfers that need it (sockets); false if nothing moved. Cheap if there is nothing
  // to do.
  virtual bool progress() = 0;

  // Changes whenever something happens that this rank may be waiting for. Read it, find that
  // nothing can progress, then wait() for it to change: events in between are not missed.
  virtual std::uint32_t signal() = 0;
  // Returns when signal() differs from `seen`, when wake() is called, or after `patience`. Spins,
  // yields and sleeps, in this order: see doorbell.h.
  virtual void wait(std::uint32_t seen, std::chrono::nanoseconds patience) = 0;
  virtual void wake() = 0;  // from any thread

  // The fault of a connection, if any.
  virtual std::optional<WireFault> fault() = 0;
};

}  // namespace weft::transport
