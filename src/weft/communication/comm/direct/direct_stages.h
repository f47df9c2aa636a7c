// weft/communication/comm/direct/direct_stages.h -- the states of a direct call, one struct each.
//
//   MailboxStage                                     ──▶ CloseStage ──▶ Over       small
//   StagedStage    copy in | combine or copy out     ──▶ CloseStage ──▶ Over       moves, one-shot reductions
//   TwoShotStage   copy in | combine | copy out      ──▶ CloseStage ──▶ Over       large all_reduce, reduce
//   SendStage, ReceiveStage                          ──▶ Over                      between two ranks
//
// step() does one piece of work and says how it went. A stage that is over puts the next in its place.
#pragma once
#include <cstddef>
#include <cstdint>
#include <variant>

#include "weft/communication/comm/direct/direct_pieces.h"
#include "weft/communication/comm/operation.h"

namespace weft::comm {

// Nothing is left to do.
struct Over {
  Progress step(DirectOperation&) { return Progress::done; }
};

// A group of one rank.
struct AloneStage {
  Progress step(DirectOperation& operation);
};

struct MailboxStage {
  std::int32_t next = 0;       // the rank that it has come to
  bool reads_buffers = false;  // of others, which wait until this rank has read them

  Progress step(DirectOperation& operation);
};

struct StagedStage {
  std::int32_t next = 0;       // the rank that it has come to in this piece
  std::size_t own_copied = 0;  // bytes of this rank's block for itself

  Progress step(DirectOperation& operation);

 private:
  void copy_in(DirectOperation& operation);
  bool copy_own(DirectOperation& operation);
  bool move_piece(DirectOperation& operation, Progress& answer);
  bool combine_piece(DirectOperation& operation, Progress& answer);
};

struct TwoShotStage {
  std::int32_t next = 0;   // the rank that it has come to in the piece that is copied out
  bool all_known = false;  // every rank's announcement was read, so that `push` is known
  bool push = false;       // results go straight into everyone's output

  Progress step(DirectOperation& operation);

 private:
  bool know_all(DirectOperation& operation, Progress& answer);
  bool combine_share(DirectOperation& operation, Progress& answer);
  bool copy_out(DirectOperation& operation, Progress& answer);
};

// Waits for the ranks that read straight from this rank's buffer.
struct CloseStage {
  std::int32_t next = 0;

  Progress step(DirectOperation& operation);
};

struct SendStage {
  std::uint64_t seen = 0;  // pieces that the other was last seen to have received

  Progress step(DirectOperation& operation);
};

struct ReceiveStage {
  std::uint64_t seen = 0;  // pieces that the other was last seen to have sent

  Progress step(DirectOperation& operation);
};

using DirectStage = std::variant<Over, AloneStage, MailboxStage, StagedStage, TwoShotStage, CloseStage,
                                 SendStage, ReceiveStage>;

}  // namespace weft::comm
