// weft/communication/comm/choice/candidates.h -- algorithms that can run a call, and their cost by
// formula.
//
//   4 ranks of one machine, shm:   direct              the direct algorithm that suits size and buffers
//                                  direct mailbox      puts M, reads 4 M             small messages
//                                  direct two-shot     copies 1.5 M, reduces M
//                                  all_reduce_ring     6 steps, sends 1.5 M          any transport
//
//   seconds = the longest chain of steps, or all messages  +  bytes sent, copied and reduced
//
// Each term counts for the busiest rank, or for all ranks together divided among the cores,
// whichever takes longer. With more ranks than cores, a waiting rank lets another work: then a tree
// in which few ranks do much is no slower than a ring. Up to 16 ranks, the moves of a program are
// counted; for more, its claims are used.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/communication/comm/call.h"
#include "weft/communication/comm/direct/direct.h"

namespace weft::comm {

// The conditions of a measured or predicted time.
struct Setting {
  Kind kind = Kind::all_reduce;
  std::int32_t ranks = 1;
  std::int32_t hosts = 1;
  std::string transport;   // "shm"
  bool allocated = false;  // buffers from allocate()

  friend auto operator<=>(const Setting&, const Setting&) = default;
};

// Cost parameters of a machine and transport, per byte of one rank.
struct Figures {
  std::int32_t cores = 1;
  double step = 0;                 // seconds from one rank's write to another's read, one core each
  double oversubscribed_step = 0;  // the same per rank that a core must switch to
  double wire = 0;                 // seconds per byte sent to another rank
  double copy = 0;                 // seconds per byte copied to or from shared memory
  double reduce = 0;               // seconds per byte read for a reduction
  std::string source;              // "default figures", "profile of 2026-11-15"

  friend bool operator==(const Figures&, const Figures&) = default;
};

// intercept + slope * bytes
struct Formula {
  double intercept = 0;  // seconds
  double slope = 0;      // seconds per byte

  double seconds(std::int64_t bytes) const { return intercept + slope * static_cast<double>(bytes); }
  friend bool operator==(const Formula&, const Formula&) = default;
};

inline constexpr std::string_view kDirect = "direct";  // the direct algorithm is chosen by size and buffers
// The direct algorithm with this name: "direct two-shot".
std::optional<DirectAlgorithm> find_direct_algorithm(std::string_view algorithm);
// The algorithm of ranks with private buffers while ranks with allocated buffers run in place.
DirectAlgorithm beside_in_place(Kind kind);

// Names of all algorithms that can run a call of this size: direct ones if all ranks share memory,
// and every shipped program for this number of ranks. Their parameters leave out ranks and root.
// Sorted; never empty for a kind with a shipped algorithm.
std::vector<std::string> candidates_for(const Setting& setting, std::int64_t bytes);

// From the description of the direct algorithms in direct.h, or from the moves or claims (claims.h)
// of the program. An unknown name costs as much as sending everything to all ranks, sequentially.
Formula formula_of(const Setting& setting, std::string_view algorithm, const Figures& figures);

}  // namespace weft::comm
