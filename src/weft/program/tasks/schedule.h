// weft/program/tasks/schedule.h -- the order in which a rank's units come.
//
//   plan        gradient of w2, all-reduce it, update w2, gradient of w1, all-reduce it, update w1
//   scheduled   gradient of w2, all-reduce it, gradient of w1, all-reduce it, update w2, update w1
//
// A unit comes after those that write what it reads, and a unit that overwrites a source after those that
// read the source. Exchanges keep the plan's order, which is the same on every rank. Among what is ready the
// plan's order decides, except that
//
//   an optimizer runs as soon as it can: its gradient's memory is then free for the next; but where its gradient is of
//     the step before, when all else is done;
//   an exchange starts as soon as it can, and what reads its result comes when it should be over: until then
//     there is other work, if there is any;
//   a gather of what a source holds, which could always start, starts when little that was fetched so is
//     still unread: parameters are gathered ahead of their use, but not all at once.
//
// What the backward phase computes of forward values alone could run at any time, and holds memory from then on: it
// comes after the unit before it in the plan.
//
// Where a step has turns (CompileOptions::turns), no unit comes before all of the turns before its own are placed;
// but a receive is begun a turn ahead, so that it is there when its turn comes.
#pragma once
#include "weft/base/result.h"
#include "weft/program/tasks/program.h"

namespace weft::program {

// Fails where the next values of a plan overwrite in a circle what others of them are made of.
Status order_units(Program& program, double flops_per_exchanged_byte);

}  // namespace weft::program
