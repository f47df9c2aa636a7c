// weft/runtime/run/local_ranks_shares.h -- cuts a rank's share out of a tensor, and puts it back.
//
//   whole [4,6]     . . . . . .        shares {rows 2 to 3, columns 3 to 5}        a b c
//                   . . . . . .                                           ──cut──▶ d e f
//                   . . . a b c
//                   . . . d e f                                           ◀──put──
//
// Included by the files of run/ only.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/layout.h"

namespace weft::run {

// Both are contiguous, in the order of the type's indices.
void cut_share(const plan::Type& type, std::span<const plan::Share> shares, std::span<const std::byte> whole,
               std::span<std::byte> part);
void put_share(const plan::Type& type, std::span<const plan::Share> shares, std::span<const std::byte> part,
               std::span<std::byte> whole);

std::int64_t elements_of(std::span<const plan::Share> shares);

// An input, parameter or state of a distributed plan, and the share that each rank holds.
struct SharedSource {
  enum class Kind : std::uint8_t { input, parameter, state };
  Kind kind = Kind::input;
  std::string name;
  plan::NodeId node;
  plan::Type type;      // of the whole tensor
  bool is_read = true;  // an output reads or updates it: ranks with a non-empty share hold it
  std::vector<std::vector<plan::Share>> shares;  // by rank

  // By rank; empty: all hold it. Ranks of other pipeline stages do not.
  std::vector<bool> held = {};

  bool has_copies = true;  // ranks with equal shares hold equal values; else each has its own

  bool is_held(std::size_t rank) const { return held.empty() || held[rank]; }
  bool is_whole(std::int32_t rank) const;  // the rank holds all of it
};

// In plan order.
std::vector<SharedSource> shared_sources(const plan::Graph& graph, const plan::Mesh& mesh,
                                         std::span<const plan::Layout> layouts);

// The same for a plan that may have stages or micro-batches.
Result<std::vector<SharedSource>> shared_sources(const distribute::DistributedPlan& plan);

}  // namespace weft::run
