// weft/collectives/chunks/actions.h -- a program as the checker and the simulator see it: agents that act.
//
//   agent   one threadblock; it does its actions in order
//   action  wait for something, combine what some cells (and perhaps a message) hold, write the value
//           to some cells, perhaps send it on, tell the others
//   cell    one chunk of memory of one rank, in-place aliases already resolved
//
// Threadblocks that send and receive (MSCCL) and threadblocks that put, signal and wait (MSCCL++) both
// come down to this, so that one checker judges both and one simulator prices both. An action does, in
// this order,
//
//   1. wait: for a published step of another agent of its rank (`wait_agent`), for a message on the
//      connection `take`, for its share of a counter (`consume`), for all members of a barrier, for
//      every packet cell among its sources to have been written
//   2. value = sources[0] + sources[1] + ... + message   (nothing at all when it has neither)
//   3. write the value to every target; put it on the connection `give`
//   4. publish its step; raise a counter by one
//
// An action of count n stands for n chunks in a row, from each cell's index on.
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
  bool packet = false;            // carries its own flag: whoever reads it waits until it was written
  std::int32_t index = 0;

  friend bool operator==(const Cell&, const Cell&) = default;
};

struct Action {
  std::int32_t agent = 0;
  std::int32_t step = 0;  // where it stands in the agent's text
  std::int32_t count = 1;

  std::int32_t wait_agent = -1, wait_step = -1;
  std::int32_t take = -1;     // connection
  std::int32_t consume = -1;  // counter: waits until it is positive, then takes one
  std::int32_t barrier = -1;

  std::int32_t first_cell = 0;  // in Actions::cells: sources, then targets
  std::int16_t sources = 0, targets = 0;

  std::int32_t give = -1;   // connection
  std::int32_t raise = -1;  // counter
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
  std::int32_t giver = -1, taker = -1;   // agents; -1: nobody
  std::vector<std::int32_t> links = {};  // of the topology, that it runs over; none: the shortest way
};

struct Counter {
  std::int32_t initial = 0;
  std::int32_t rank = 0;       // whose memory it is in
  std::int32_t from_rank = 0;  // who raises it
  std::string name;            // for people: "channel 2 from gpu 1", "semaphore 0"
};

struct Barrier {
  std::int32_t rank = 0;
  std::vector<std::int32_t> members;  // agents, each of which comes equally often
};

struct RankMemory {
  std::int32_t chunks[3] = {0, 0, 0};  // by Buffer, aliases resolved
};

struct Actions {
  Collective collective;
  Placement placement = Placement::out_of_place;  // never `either`
  std::vector<RankMemory> memory;                 // one a rank
  std::vector<Agent> agents;
  std::vector<Action> actions;  // agent by agent
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

// What a program's threadblocks do under one placement. Chunk grain cuts a step of count n into n actions
// of one chunk (the first waits, the last publishes); step grain keeps it whole.
// REQUIRES: check_form(program) has found nothing (see check.h).
enum class Grain : std::uint8_t { chunk, step };
Actions to_actions(const Program& program, Placement placement, Grain grain);

}  // namespace weft::collective
