// weft/runtime/run/collective_trial.h -- one rank's part in trying out a chunk program: run, time, compare.
//
// Every rank of a job does the same trial. First exact numbers, whose result is compared
// element by element where that is asked for; then rough ones, once and `repeat` times more, which are timed;
// their result is summed up in a checksum, and the last must be that of the first.
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
  std::shared_ptr<const collective::Program> program;  // checked
  std::int32_t slots = 1;                              // that a connection needs
  std::int64_t count = 0;                              // as comm::Call has it
  std::vector<std::int64_t> counts;
  comm::ElementType type = comm::ElementType::f32;
  comm::ReduceOp op = comm::ReduceOp::sum;
  bool in_place = false;
  bool verify = false;
  std::int32_t repeat = 1;
  std::int64_t slot_bytes = 128 << 10;  // at most
};

struct TrialOutcome {
  std::vector<std::int64_t> begins, ends;  // of each repetition, ns of the machine's steady clock
  std::int64_t wrong = 0;                  // elements
  std::string first_wrong;                 // "output[7] of rank 1 is ...", or that two runs differ
  std::uint64_t checksum = 0;              // of the output's bits
};

// Bytes as nccl-tests counts them to elements a block, rounded down; and back.
CollectiveTrial with_bytes(CollectiveTrial trial, std::int64_t bytes);
std::int64_t message_bytes(const CollectiveTrial& trial);

// From when the last rank began to when the last ended: the median over repetitions. Ranks on one machine.
double median_seconds(std::span<const TrialOutcome> ranks);

// All ranks' outcomes, at every rank. `transport` is inproc, shm or tcp. Gives up, saying who is waited for,
// when nothing has moved for the job's timeout or a rank has died.
Result<std::vector<TrialOutcome>> run_trial(const CollectiveTrial& trial,
                                            const std::shared_ptr<transport::Job>& job,
                                            std::string_view transport);

// The same on as many threads of this process as the program has ranks.
Result<std::vector<TrialOutcome>> run_trial_on_threads(const CollectiveTrial& trial,
                                                       std::chrono::milliseconds timeout);

// The same with all ranks on this machine's GPU, in one kernel: the program's blocks, or, `directly`, each reading the
// others' memory (comm/gpu/). Times are the GPU's own, of repetitions one right after another.
Result<std::vector<TrialOutcome>> run_trial_on_gpu(const CollectiveTrial& trial, bool directly = false);

}  // namespace weft::run
