// weft/communication/transport/mpi/connection.h -- a connection as MPI messages of one tag.
//
//   Outgoing   [ slot | slot | slot ]  --MPI_Issend, tag 17-->  [ slot | slot | slot ]   Incoming
//               header, payload                                  MPI_Irecv posted ahead
//
// The receiver keeps a receive posted for every slot; a send completes when one of them matches it.
// So at most twice `slots` messages are in flight, and a slot with a completed send is a credit.
// MPI keeps messages of one tag in order. Payloads are copied into and out of slots: MPI's buffers
// must not move, and the header must precede the payload.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "weft/communication/transport/connection.h"
#include "weft/communication/transport/endpoint.h"
#include "weft/communication/transport/mpi/library.h"

namespace weft::transport::mpi {

class Watched;

// State shared by an endpoint and its connections. The library's lock guards everything except
// `signal`.
struct Traffic {
  std::shared_ptr<Library> library;
  std::atomic<std::uint32_t> signal = 0;  // number of events
  std::vector<Watched*> watched;
  std::optional<WireFault> fault;  // the first one
};

// A connection that can be polled.
class Watched {
 public:
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  // Polls for the event that its user waits for. REQUIRES: the lock.
  bool look();

 protected:
  explicit Watched(std::shared_ptr<Traffic> traffic) : traffic_(std::move(traffic)) {}
  ~Watched() = default;
  virtual bool ready() = 0;

  // Called by the most derived class, once it is fully constructed. REQUIRES: the lock.
  void enlist() { traffic_->watched.push_back(this); }
  void retire() { std::erase(traffic_->watched, this); }

  std::shared_ptr<Traffic> traffic_;
  bool awaited_ = false;  // the user's last call could not progress
};

// One end of a connection; the peer by MPI rank.
struct WireEnd {
  Wire wire;
  std::int32_t peer = 0, tag = 0;  // peer: an MPI rank
  bool checked = false;            // with checksums: between machines
};

std::unique_ptr<Outgoing> make_outgoing(std::shared_ptr<Traffic> traffic, const WireEnd& end,
                                        const Capacity& capacity);
std::unique_ptr<Incoming> make_incoming(std::shared_ptr<Traffic> traffic, const WireEnd& end,
                                        const Capacity& capacity);

}  // namespace weft::transport::mpi
