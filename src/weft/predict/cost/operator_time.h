// weft/predict/cost/operator_time.h -- measured times of units, kept for later predictions.
//
//   EXPLAIN ANALYZE ...   learn(statistics, program, timelines)        one row per kind of unit
//   EXPLAIN ...           step_costs() finds unit_key(program, unit)   its cost is the measured time
//
//   "product f32 2048x384x384 nn"     "rows f32 65536x384 load load add gelu store"     "copy f32 8x6x256x64"
#pragma once
#include <span>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/cluster/device.h"
#include "weft/predict/cost/statistics.h"
#include "weft/program/tasks/program.h"
#include "weft/program/tasks/timeline.h"

namespace weft::cost {

// How many threads compute on the machine at the same time. They share the memory, and the
// processors if there are fewer of these.
struct Concurrency {
  int ranks = 1;
  int workers = 1;  // per rank
};

// Whether the threads outnumber this machine's processors.
bool is_oversubscribed(const Concurrency& concurrency);

// A text key of everything that determines a unit's time on a given machine: kernel, shape, dtype,
// concurrency. Equal work has equal keys in any program, since keys contain no names of values or
// indices. Empty for an exchange. A long key is truncated and ends in a hash of the whole key.
std::string unit_key(const program::Program& program, const program::Unit& unit,
                     const Concurrency& concurrency = {});

// The expected time of the next run after several runs: their median. On oversubscribed processors
// their mean, because now and then a run is descheduled and all others wait for it.
double typical_seconds(std::vector<double> runs, const Concurrency& concurrency);

// "product", "rows", "call", "copy" or "combine": units of one kind reach a similar fraction of the
// roofline.
std::string_view unit_kind(const program::Unit& unit);

// Adds the measured time of each kind of unit: the total time of a unit's tasks, as the median over
// the runs and the mean over the units with one key. If a device is given, also records the
// fraction of its roofline that each kind of unit reached, for estimates of units that were not
// measured. REQUIRES: timelines of this program.
Status learn(Statistics& statistics, const program::Program& program,
             std::span<const program::Timeline> timelines, const Concurrency& concurrency = {},
             const cluster::Device* device = nullptr);

}  // namespace weft::cost
