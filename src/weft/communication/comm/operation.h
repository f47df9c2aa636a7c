// weft/communication/comm/operation.h -- a collective in flight: a state machine that never blocks.
//
//   step() ──▶ moved     some bytes moved; more may be possible at once
//          ──▶ blocked   no progress until waiting_for() does something
//          ──▶ done      this rank's buffers are complete and may be reused
//          ──▶ failed    error() says why; nothing more will happen
//
// The engine calls step() on the highest-priority operation that can progress. One step moves about
// one fragment (some 100 KiB), which bounds the delay of a higher-priority operation. Operations do
// not lock: the engine does.
#pragma once
#include <cstdint>
#include <string_view>

#include "weft/base/result.h"

namespace weft::comm {

enum class Progress : std::uint8_t { moved, blocked, done, failed };

class Operation {
 public:
  virtual ~Operation() = default;

  virtual Progress step() = 0;

  // A rank of the group, or -1 if it waits for several. REQUIRES: the last step() returned blocked.
  virtual std::int32_t waiting_for() const = 0;
  // Progress for display: fragments done, and fragments in total.
  virtual std::int64_t pieces_done() const = 0;
  virtual std::int64_t pieces() const = 0;

  virtual std::string_view algorithm() const = 0;  // "direct two-shot", "all_reduce_ring"

  // REQUIRES: the last step() returned failed.
  virtual Error error() const = 0;
};

}  // namespace weft::comm
