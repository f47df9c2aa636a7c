// bare_sockets.h -- what sockets get of a network without Weft: one alone, and one from each host to each.
//
//   a line    first rank of host 0 ══ first rank of host 1        one byte to and fro; one long stream
//   a wave    first rank of every host ══ that of every other     what all send each other at once
//
// The line is what the bound of a collective is made of. The wave is the same messages as of a collective in
// one step with nothing around them: where a few cores run many hosts and the network between them, it takes
// longer than the bound, and the rest is what Weft adds.
#pragma once
#include <cstddef>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/comm/communicator.h"
#include "weft/communication/transport/tcp/socket.h"

namespace weft::hosts {

// In seconds: one way of one byte, and a byte of a stream.
struct Line {
  double delay = 0, seconds_per_byte = 0;
};

// Collective. Sockets between the first ranks of all hosts, ranks being evenly on them in order. `address` is
// one of rank 0's host that all can reach.
class Leaders {
 public:
  static Result<Leaders> connect(comm::Communicator& group, int hosts, const char* address);

  // Collective: what one socket gets between the first two hosts; all ranks get the answer.
  Result<Line> try_line(comm::Communicator& group) const;

  // So many bytes from every host to every other, or from the first alone. Ranks that lead no host have
  // nothing to do.
  Status wave(std::size_t bytes, bool from_first_alone);

 private:
  int hosts_ = 0, host_ = 0;
  bool leads_ = false;
  std::vector<transport::tcp::Socket> others_;  // by host; none for itself
  std::vector<std::byte> memory_;
};

}  // namespace weft::hosts
