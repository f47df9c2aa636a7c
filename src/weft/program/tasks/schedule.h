// weft/program/tasks/schedule.h -- orders the units of a rank.
//
//   plan        gradient of w2, all-reduce it, update w2, gradient of w1, all-reduce it, update w1
//   scheduled   gradient of w2, all-reduce it, gradient of w1, all-reduce it, update w2, update w1
//
// A unit comes after those that write what it reads. A unit that overwrites a source comes after
// the source's readers. Exchanges keep the plan's order, which is the same on every rank. Ready
// units keep the plan's order, except:
//
//   an optimizer runs as soon as possible, so that its gradient's memory is free for the next one.
//     If the gradient is from the previous step, it runs when all else is done;
//   an exchange starts as soon as possible, and readers of its result are scheduled when it should
//     be done; until then other work runs, if there is any;
//   a gather of a source, which could always start, starts only when little fetched data is still
//     unread: parameters are prefetched, but not all at once.
//
// Backward units that depend only on forward values could run at any time and would hold memory
// from then on. Each comes after the unit that precedes it in the plan.
//
// If a step has turns (CompileOptions::turns), no unit runs before all units of earlier turns. But
// a receive is posted one turn ahead, so that its data has arrived when it is needed.
#pragma once
#include "weft/base/result.h"
#include "weft/program/tasks/program.h"

namespace weft::program {

// Fails if the next values of sources depend on one another's old values in a cycle.
Status order_units(Program& program, double flops_per_exchanged_byte);

}  // namespace weft::program
