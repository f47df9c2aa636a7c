// weft/collectives/chunks/actions.h -- a program as agents and actions, for checker and simulator.
//
//   agent   one threadblock; it does its actions in order
//   action  wait for an event, add up some cells (and perhaps a message), write the sum to some
//           cells, perhaps send it, signal completion
//   cell    one chunk of memory of one rank, in-place aliases already resolved
//
// Threadblocks that send and receive (MSCCL) and threadblocks that put, signal and wait (MSCCL++)
// both reduce to this form, so one checker and one simulator serve both. An action does, in this
// order,
//
//   1. wait: for a published step of another agent of its rank (`wait_agent`), for a message on the
//      connection `take`, for a positive counter (`consume`), for all members of a barrier, for
//      every packet cell among its sources to have been written
//   2. value = sources[0] + sources[1] + ... + message   (none if it has neither)
//   3. write the value to every target; send it on the connection `give`
//   4. publish its step; raise a counter by one
//
// An action of count n covers n consecutive chunks from each cell's index on.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weft/collectives/chunks/collective.h"
#include "weft/collectives/chunks/program.h"

namespace weft::collective {

struct Cell {
  std::int32_t rank = 0;
  Buffer buffer = Buffer::input;  // resolved: see resolve() in program.h
  bool packet = false;            // carries its own flag: a reader waits until it was written
  std::int32_t index = 0;

  friend bool operator==(const Cell&, const Cell&) = default;
};

struct Action {
  std::int32_t agent = 0;
  std::int32_t step = 0;  // its number in the agent's program
  std::int32_t count = 1;

  std::int32_t wait_agent = -1, wait_step = -1;
  std::int32_t take = -1;     // connection to receive from
  std::int32_t consume = -1;  // counter: waits until it is positive, then decrements it
  std::int32_t barrier = -1;

  std::int32_t first_cell = 0;  // in Actions::cells: sources, then targets
  std::int16_t sources = 0, targets = 0;

  std::int32_t give = -1;   // connection to send on
  std::int32_t raise = -1;  // counter to increment
  bool publishes = false;
};

struct Agent {
  std::int32_t rank = 0;
  std::int32_t block = 0;
  std::int32_t first = 0;  // its actions are [first, end) of Actions::actions
  std::int32_t end = 0;
};

struct Connection {
  std::int32_t from = 0, to = 0;  // ranks
  std::int32_t channel = 0;
  std::int32_t giver = -1, taker = -1;   // sending and receiving agent; -1: none
  std::vector<std::int32_t> links = {};  // route over the topology's links; empty: the shortest path
};

struct Counter {
  std::int32_t initial = 0;
  std::int32_t rank = 0;       // rank whose memory holds it
  std::int32_t from_rank = 0;  // rank that raises it
  std::string name;            // for messages: "channel 2 from gpu 1", "semaphore 0"
};

struct Barrier {
  std::int32_t rank = 0;
  std::vector<std::int32_t> members;  // agents; each arrives equally often
};

struct RankMemory {
  std::int32_t chunks[3] = {0, 0, 0};  // by Buffer, aliases resolved
};

struct Actions {
  Collective collective;
  Placement placement = Placement::out_of_place;  // never `either`
  std::vector<RankMemory> memory;                 // per rank
  std::vector<Agent> agents;
  std::vector<Action> actions;  // grouped by agent
  std::vector<Cell> cells;
  std::vector<Connection> connections;
  std::vector<Counter> counters;
  std::vector<Barrier> barriers;

  std::span<const Cell> sources(const Action& action) const {
    return std::span(cells).subspan(action.first_cell, action.sources);
  }
  std::span<const Cell> targets(const Action& action) const {
    return std::span(cells).subspan(action.first_cell + action.sources, action.targets);
  }
};

// The actions of a program's threadblocks under one placement. Chunk grain splits a step of count n
// into n actions of one chunk (the first waits, the last publishes); step grain keeps it whole.
// REQUIRES: check_form(program) found nothing (see check.h).
enum class Grain : std::uint8_t { chunk, step };
Actions to_actions(const Program& program, Placement placement, Grain grain);

}  // namespace weft::collective
