// weft/communication/comm/choice/candidates.h -- what may run a call, and what the formula says it costs.
//
//   4 ranks of one machine, shm:   direct              whichever of its ways suits size and buffers
//                                  direct mailbox      puts M, reads 4 M             small messages
//                                  direct two-shot     copies 1.5 M, reduces M
//                                  all_reduce_ring     6 steps, sends 1.5 M          any transport
//
//   seconds = the longest chain of steps, or all messages  +  bytes sent, copied and reduced
//
// Each term counts for the rank that does most, or for all ranks together divided among the cores, whichever
// takes longer. With more ranks than cores, a rank that waits lets another work: then a tree in which few
// ranks do much is no slower than a ring. Up to 16 ranks the moves of a program are counted; for more, its
// claims are believed.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/communication/comm/call.h"
#include "weft/communication/comm/direct/direct.h"

namespace weft::comm {

// Under what conditions a time holds.
struct Setting {
  Kind kind = Kind::all_reduce;
  std::int32_t ranks = 1;
  std::int32_t hosts = 1;
  std::string transport;   // "shm"
  bool allocated = false;  // buffers from allocate()

  friend auto operator<=>(const Setting&, const Setting&) = default;
};

// What one machine and transport cost. Bytes are those of one rank.
struct Figures {
  std::int32_t cores = 1;
  double step = 0;                 // seconds from one rank's write to another's reading it, a core each
  double oversubscribed_step = 0;  // the same for each rank that a core must switch to
  double wire = 0;                 // seconds a byte sent to another rank
  double copy = 0;                 // seconds a byte copied to or from shared memory
  double reduce = 0;               // seconds a byte read to be reduced
  std::string source;              // "default figures", "profile of 2026-11-15"

  friend bool operator==(const Figures&, const Figures&) = default;
};

// intercept + slope * bytes
struct Formula {
  double intercept = 0;  // seconds
  double slope = 0;      // seconds a byte

  double seconds(std::int64_t bytes) const { return intercept + slope * static_cast<double>(bytes); }
  friend bool operator==(const Formula&, const Formula&) = default;
};

inline constexpr std::string_view kDirect = "direct";  // whichever of its ways suits the size and the buffers
// What a name asks for: "direct two-shot".
std::optional<DirectWay> find_direct_way(std::string_view algorithm);
// What ranks with private buffers do while those with allocated ones go in place.
DirectWay beside_in_place(Kind kind);

// Names of what may run a call of this size: direct ways where all ranks share memory, and every shipped
// program that can do it for so many ranks, ranks and root left out. Sorted; never empty for a kind that Weft
// ships an algorithm of.
std::vector<std::string> candidates_for(const Setting& setting, std::int64_t bytes);

// From what direct.h says of its ways, or from what the program does or claims of itself (claims.h). A name
// that is neither is priced as if it sent everything to everyone, one after the other.
Formula formula_of(const Setting& setting, std::string_view algorithm, const Figures& figures);

}  // namespace weft::comm
