// weft/communication/comm/operation.h -- a collective under way: a state machine that never waits.
//
//   step() ──▶ moved     some bytes moved; there may be more to do at once
//          ──▶ blocked   nothing can go on until waiting_for() does something
//          ──▶ done      this rank's buffers are complete and its own again
//          ──▶ failed    error() says why; nothing more will happen
//
// The engine calls step() on the operation of highest priority that can go on. One step moves about one
// piece (some 100 KiB), so that a more urgent operation is never kept waiting for longer than that.
// Operations do not lock: the engine does.
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

  // REQUIRES: the last step() answered blocked. A rank of the group, or -1 when it is not one alone.
  virtual std::int32_t waiting_for() const = 0;
  // How far it is, for people: pieces done and pieces in all.
  virtual std::int64_t pieces_done() const = 0;
  virtual std::int64_t pieces() const = 0;

  virtual std::string_view algorithm() const = 0;  // "direct two-shot", "all_reduce_ring"

  // REQUIRES: the last step() answered failed.
  virtual Error error() const = 0;
};

}  // namespace weft::comm
