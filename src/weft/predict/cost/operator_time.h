// weft/predict/cost/operator_time.h -- the times of units that were run, kept for the next prediction.
//
//   EXPLAIN ANALYZE ...   learn(statistics, program, timelines)        a row for every kind of unit
//   EXPLAIN ...           step_costs() finds unit_key(program, unit)   its price is what was measured
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

// How much computes on the machine at the same time. All of it shares the memory, and the processors where
// these are fewer.
struct Concurrency {
  int ranks = 1;
  int workers = 1;  // of each
};

// Whether its threads outnumber this machine's processors.
bool is_oversubscribed(const Concurrency& concurrency);

// What decides how long a unit takes on a given machine, as text: the kernel, its shape, the dtype, the
// concurrency. Equal work has equal keys in any program, since names of values and indices are not in them.
// Empty for an exchange. A long key is cut and ends in a hash of all of it.
std::string unit_key(const program::Program& program, const program::Unit& unit,
                     const Concurrency& concurrency = {});

// What to expect of the next run after several: their median. On oversubscribed processors their mean,
// because now and then a run loses its processor and all others wait for it.
double typical_seconds(std::vector<double> runs, const Concurrency& concurrency);

// "product", "rows", "call", "copy" or "combine": kinds of units that fall short of the roofline alike.
std::string_view unit_kind(const program::Unit& unit);

// Adds what the timelines say of each kind of unit: what all tasks of a unit took together, as the median of
// the runs and the mean over the units of one key. Where a device is given, also which part of its roofline
// the units of each kind reached; that prices units which were not measured.
// REQUIRES: timelines of this program.
Status learn(Statistics& statistics, const program::Program& program,
             std::span<const program::Timeline> timelines, const Concurrency& concurrency = {},
             const cluster::Device* device = nullptr);

}  // namespace weft::cost
