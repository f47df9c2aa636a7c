// weft/collectives/check/happens_before.h -- what comes before what in every run of a program.
//
//   threads   agents; and, as threads of their own, every barrier and every packet cell that several
//             agents write
//   nodes     actions; then the rounds of the barriers; then "the cell has been written"
//
//      agent 0   send -----------+          a node comes after the one before it in its thread and
//      agent 1   receive <-------+          after every node of before(node)
//                publish ---+
//      agent 2   reduce <---+
//
// The k-th message given to a connection is the k-th taken from it. A wait for step s is a wait for the
// first action from step s on that publishes. Consuming a counter for the j-th time means that it was
// raised j - initial times at least: with R raises in all, R_a of them by agent a, agent a then has
// raised it (j - initial) - (R - R_a) times at least, whoever else was quick. With one agent at
// either end that is exact; with several it is the most that holds in every run.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/collectives/chunks/actions.h"

namespace weft::collective {

inline constexpr std::int32_t kNever = -1;  // stands for a node that does not exist

// Who uses a connection, in the order of use.
struct Uses {
  std::vector<std::int32_t> first_give, gives;  // gives[first_give[c] + k]: the k-th giving to c
  std::vector<std::int32_t> first_take, takes;

  std::span<const std::int32_t> giving(std::int32_t connection) const {
    return std::span(gives).subspan(first_give[connection],
                                    first_give[connection + 1] - first_give[connection]);
  }
  std::span<const std::int32_t> taking(std::int32_t connection) const {
    return std::span(takes).subspan(first_take[connection],
                                    first_take[connection + 1] - first_take[connection]);
  }
};

Uses uses_of_connections(const Actions& actions);

struct HappensBefore {
  struct Thread {
    std::int32_t rank, first, end;
  };
  // "Packet cell written": after whichever of its writers comes first, which the run finds out.
  struct FirstWrite {
    std::int32_t writer, node;
  };

  std::vector<Thread> threads;
  std::vector<std::int32_t> thread;        // of a node
  std::vector<std::int32_t> first_before;  // in `predecessors`
  std::vector<std::int32_t> predecessors;
  std::vector<FirstWrite> first_writes;  // sorted by writer
  std::vector<std::uint8_t> shared;      // of a counter: several agents raise it or consume it
  Uses uses;

  std::int32_t nodes() const { return static_cast<std::int32_t>(thread.size()); }
  // Other threads' nodes that `node` waits for; kNever among them: it can never run.
  std::span<const std::int32_t> before(std::int32_t node) const {
    return std::span(predecessors).subspan(first_before[node], first_before[node + 1] - first_before[node]);
  }
};

HappensBefore happens_before(const Actions& actions);

// The action that a wait for `step` of `agent` waits for.
std::int32_t publisher(const Actions& actions, std::int32_t agent, std::int32_t step);

}  // namespace weft::collective
