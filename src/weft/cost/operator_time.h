// weft/cost/operator_time.h -- the times of units that were run, kept for the next prediction.
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
#include "weft/cluster/device.h"
#include "weft/cost/statistics.h"
#include "weft/program/program.h"
#include "weft/program/timeline.h"

namespace weft::cost {

// Who computes on the machine at the same time: they share its memory, and its processors when they are more.
struct Concurrency {
  int ranks = 1;
  int workers = 1;  // of each
};

// Whether they outnumber this machine's processors.
bool is_oversubscribed(const Concurrency& concurrency);

// What decides how long a unit takes on a given machine, as text: the kernel, its shape, the dtype, the
// concurrency. Equal for equal work anywhere in any program: names of values and indices are not in it. Empty for
// an exchange. A long one is cut and ends in a hash of all of it.
std::string unit_key(const program::Program& program, const program::Unit& unit,
                     const Concurrency& concurrency = {});

// What several runs of one thing say of the next: the median; where ranks outnumber processors the mean,
// since now and then one of them pays for all by losing its processor.
double typical_seconds(std::vector<double> runs, const Concurrency& concurrency);

// "product", "rows", "call", "copy" or "combine": kinds of units that fall short of the roofline alike.
std::string_view unit_kind(const program::Unit& unit);

// Adds what the timelines say of each kind of unit: what all tasks of a unit took together, the median of the
// runs, the mean over the units of one key. Where a device is given, also which part of its roofline the
// units of each kind reached, which prices units that were not measured. REQUIRES: timelines of this program.
Status learn(Statistics& statistics, const program::Program& program,
             std::span<const program::Timeline> timelines, const Concurrency& concurrency = {},
             const cluster::Device* device = nullptr);

}  // namespace weft::cost
