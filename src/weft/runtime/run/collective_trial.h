// weft/runtime/run/collective_trial.h -- one rank's share of a trial of a chunk program: run, time, compare.
//
// All ranks of a job do the same trial. With `verify`, a run on exact values is compared element by
// element. Then a run on rough values is repeated `repeat` times and timed; the checksum of the
// last result must equal that of the first.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/program.h"
#include "weft/communication/comm/call.h"
#include "weft/communication/transport/job.h"

namespace weft::run {

struct CollectiveTrial {
  std::shared_ptr<const collective::Program> program;  // must have been checked
  std::int32_t slots = 1;                              // per connection
  std::int64_t count = 0;                              // as in comm::Call
  std::vector<std::int64_t> counts;
  comm::ElementType type = comm::ElementType::f32;
  comm::ReduceOp op = comm::ReduceOp::sum;
  bool in_place = false;
  bool verify = false;
  std::int32_t repeat = 1;
  std::int64_t slot_bytes = 128 << 10;  // maximum
};

struct TrialOutcome {
  std::vector<std::int64_t> begins, ends;  // per repetition, in ns of the steady clock
  std::int64_t wrong = 0;                  // number of wrong elements
  std::string first_wrong;                 // "output[7] of rank 1 is ...", or that two runs differ
  std::uint64_t checksum = 0;              // of the output's bits
};

// Converts bytes as counted by nccl-tests to elements per block, rounded down; and back.
CollectiveTrial with_bytes(CollectiveTrial trial, std::int64_t bytes);
std::int64_t message_bytes(const CollectiveTrial& trial);

// The time from the last rank's start to the last rank's end, as the median over repetitions.
// REQUIRES: all ranks ran on one machine.
double median_seconds(std::span<const TrialOutcome> ranks);

// Returns all ranks' outcomes on every rank. `transport` is inproc, shm or tcp. Fails, naming the
// rank waited for, after the job's timeout without progress, or if a rank failed.
Result<std::vector<TrialOutcome>> run_trial(const CollectiveTrial& trial,
                                            const std::shared_ptr<transport::Job>& job,
                                            std::string_view transport);

// The same with one thread per rank in this process.
Result<std::vector<TrialOutcome>> run_trial_on_threads(const CollectiveTrial& trial,
                                                       std::chrono::milliseconds timeout);

// The same with all ranks on this machine's GPU in one kernel: it runs the program's threadblocks
// or, if `directly`, reads the memory of other ranks (comm/gpu/). Times are measured by the GPU
// over back-to-back repetitions.
Result<std::vector<TrialOutcome>> run_trial_on_gpu(const CollectiveTrial& trial, bool directly = false);

}  // namespace weft::run
