// weft/communication/transport/mpi/connection.h -- a wire as MPI messages of one tag.
//
//   Outgoing   [ slot | slot | slot ]  --MPI_Issend, tag 17-->  [ slot | slot | slot ]   Incoming
//               header, payload                                  MPI_Irecv posted ahead
//
// The receiver keeps a receive posted for every slot; a send completes when one of them takes it. So at most
// twice `slots` messages are under way, and a slot whose send has completed is a credit. MPI keeps messages
// of one tag in order. Payloads are copied into and out of slots: what MPI reads must stay in place and the
// header must be beside it.
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

// What an endpoint and its connections share. All but `signal` is guarded by the library's lock.
struct Traffic {
  std::shared_ptr<Library> library;
  std::atomic<std::uint32_t> signal = 0;  // events so far
  std::vector<Watched*> watched;
  std::optional<WireFault> fault;  // the first
};

// A connection that may be waited for.
class Watched {
 public:
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  // Whether what its user waits for has come about. REQUIRES: the lock.
  bool look();

 protected:
  explicit Watched(std::shared_ptr<Traffic> traffic) : traffic_(std::move(traffic)) {}
  ~Watched() = default;
  virtual bool ready() = 0;

  // Called by the most derived class, which must be whole while it is looked at. REQUIRES: the lock.
  void enlist() { traffic_->watched.push_back(this); }
  void retire() { std::erase(traffic_->watched, this); }

  std::shared_ptr<Traffic> traffic_;
  bool awaited_ = false;  // the last call of its user had to be put off
};

// One end of a wire: who is at the other, by MPI's numbers.
struct WireEnd {
  Wire wire;
  std::int32_t peer = 0, tag = 0;  // peer: a rank of the library's
  bool checked = false;            // with a checksum: it crosses machines
};

std::unique_ptr<Outgoing> make_outgoing(std::shared_ptr<Traffic> traffic, const WireEnd& end,
                                        const Capacity& capacity);
std::unique_ptr<Incoming> make_incoming(std::shared_ptr<Traffic> traffic, const WireEnd& end,
                                        const Capacity& capacity);

}  // namespace weft::transport::mpi
