// weft/communication/comm/direct/direct_stages.h -- the states of a direct call, one struct each.
//
//   MailboxStage                                     ──▶ CloseStage ──▶ Over       small
//   StagedStage    copy in | combine or copy out     ──▶ CloseStage ──▶ Over       moves, one-shot reductions
//   TwoShotStage   copy in | combine | copy out      ──▶ CloseStage ──▶ Over       large all_reduce, reduce
//   SendStage, ReceiveStage                          ──▶ Over                      between two ranks
//
// step() does one unit of work and returns the outcome. A completed stage replaces itself by the
// next.
#pragma once
#include <cstddef>
#include <cstdint>
#include <variant>

#include "weft/communication/comm/direct/direct_fragments.h"
#include "weft/communication/comm/operation.h"

namespace weft::comm {

// The call is complete.
struct Over {
  Progress step(DirectOperation&) { return Progress::done; }
};

// A group of one rank.
struct SingleRankStage {
  Progress step(DirectOperation& operation);
};

struct MailboxStage {
  std::int32_t next = 0;       // next rank to process
  bool reads_buffers = false;  // of peers, which wait until this rank has read them

  Progress step(DirectOperation& operation);
};

struct StagedStage {
  std::int32_t next = 0;       // next rank to process in this fragment
  std::size_t own_copied = 0;  // bytes of this rank's block for itself

  Progress step(DirectOperation& operation);

 private:
  void copy_in(DirectOperation& operation);
  bool copy_own(DirectOperation& operation);
  bool move_piece(DirectOperation& operation, Progress& answer);
  bool combine_piece(DirectOperation& operation, Progress& answer);
};

struct TwoShotStage {
  std::int32_t next = 0;   // next rank to process in the fragment being copied out
  bool all_known = false;  // all announcements are read, so `push` is valid
  bool push = false;       // results go straight into every output

  Progress step(DirectOperation& operation);

 private:
  bool know_all(DirectOperation& operation, Progress& answer);
  bool combine_share(DirectOperation& operation, Progress& answer);
  bool copy_out(DirectOperation& operation, Progress& answer);
};

// Waits for the ranks that read this rank's buffer directly.
struct CloseStage {
  std::int32_t next = 0;

  Progress step(DirectOperation& operation);
};

struct SendStage {
  std::uint64_t seen = 0;  // last known number of fragments received by the peer

  Progress step(DirectOperation& operation);
};

struct ReceiveStage {
  std::uint64_t seen = 0;  // last known number of fragments sent by the peer

  Progress step(DirectOperation& operation);
};

using DirectStage = std::variant<Over, SingleRankStage, MailboxStage, StagedStage, TwoShotStage, CloseStage,
                                 SendStage, ReceiveStage>;

}  // namespace weft::comm
