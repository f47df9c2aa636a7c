// weft/collectives/check/happens_before.h -- the order of events that holds in every run.
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
// The k-th message sent on a connection is the k-th received. A wait for step s is a wait for the
// first publishing action from step s on. Consuming a counter for the j-th time means that it was
// raised at least j - initial times. With R raises in total, R_a of them by agent a, agent a has
// then raised it at least (j - initial) - (R - R_a) times, however fast the others were. With one
// agent at either end this is exact; with several it is the strongest order that holds in every
// run.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/collectives/chunks/actions.h"

namespace weft::collective {

inline constexpr std::int32_t kNever = -1;  // a node that does not exist

// The actions that use each connection, in order.
struct Uses {
  std::vector<std::int32_t> first_send, gives;  // gives[first_send[c] + k]: the k-th send on c
  std::vector<std::int32_t> first_receive, takes;

  std::span<const std::int32_t> giving(std::int32_t connection) const {
    return std::span(gives).subspan(first_send[connection],
                                    first_send[connection + 1] - first_send[connection]);
  }
  std::span<const std::int32_t> taking(std::int32_t connection) const {
    return std::span(takes).subspan(first_receive[connection],
                                    first_receive[connection + 1] - first_receive[connection]);
  }
};

Uses uses_of_connections(const Actions& actions);

struct HappensBefore {
  struct Thread {
    std::int32_t rank, first, end;
  };
  // "Packet cell written": follows the first of its writers to run, which the trial run determines.
  struct FirstWrite {
    std::int32_t writer, node;
  };

  std::vector<Thread> threads;
  std::vector<std::int32_t> thread;        // per node
  std::vector<std::int32_t> first_before;  // per node: offset in `predecessors`
  std::vector<std::int32_t> predecessors;
  std::vector<FirstWrite> first_writes;  // sorted by writer
  std::vector<std::uint8_t> shared;      // per counter: several agents raise it or consume it
  Uses uses;

  std::int32_t nodes() const { return static_cast<std::int32_t>(thread.size()); }
  // The nodes of other threads that `node` waits for. If kNever is among them, it can never run.
  std::span<const std::int32_t> before(std::int32_t node) const {
    return std::span(predecessors).subspan(first_before[node], first_before[node + 1] - first_before[node]);
  }
};

HappensBefore happens_before(const Actions& actions);

// The action that a wait for `step` of `agent` waits for.
std::int32_t publisher(const Actions& actions, std::int32_t agent, std::int32_t step);

}  // namespace weft::collective
