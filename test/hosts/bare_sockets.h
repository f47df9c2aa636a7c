// bare_sockets.h -- what bare sockets achieve on a network without Weft: one alone, and all hosts
// at once.
//
//   a line    first rank of host 0 ══ first rank of host 1        one byte back and forth; one long stream
//   a wave    first rank of every host ══ that of every other     all hosts send to all others at once
//
// The bound of a collective is computed from the line. The wave sends the messages of a one-step
// collective and nothing else. Where a few cores run many hosts and the network between them, the
// wave takes longer than the bound; the remaining time is Weft's overhead.
#pragma once
#include <cstddef>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/comm/communicator.h"
#include "weft/communication/transport/tcp/socket.h"

namespace weft::hosts {

// In seconds: the one-way delay of a byte, and the time per byte of a stream.
struct Line {
  double delay = 0, seconds_per_byte = 0;
};

// Collective. Connects the first ranks of all hosts. Ranks must be spread evenly and in order over
// the hosts. `address` is one of rank 0's host that all hosts can reach.
class Leaders {
 public:
  static Result<Leaders> connect(comm::Communicator& group, int hosts, const char* address);

  // Collective: measures one socket between the first two hosts. All ranks get the result.
  Result<Line> try_line(comm::Communicator& group) const;

  // Sends `bytes` from every host to every other, or only from the first. Ranks that are not the
  // first of their host do nothing.
  Status wave(std::size_t bytes, bool from_first_alone);

 private:
  int hosts_ = 0, host_ = 0;
  bool leads_ = false;
  std::vector<transport::tcp::Socket> others_;  // by host; empty for this one
  std::vector<std::byte> memory_;
};

}  // namespace weft::hosts
