// weft/runtime/run/local_ranks.h -- runs several ranks on this machine.
//
//   on_local_ranks({.ranks = 4}, mine, work)   this process: rank 0 ──────── mine(job) ──────▶ its result
//                                                 ├─ spawn ─▶ rank 1 ── part(job, bytes) ──▶ exits
//                                                 ├─ spawn ─▶ rank 2 ── part(job, bytes) ──▶ exits
//                                                 └─ spawn ─▶ rank 3 ── part(job, bytes) ──▶ exits
//
// Rank 0 is the calling process, so its results need no transfer. The others are new processes
// (rank_program.h) that receive only the bytes of their work. Threads and TCP exist for comparison.
// Under a launcher (mpirun, weft launch) nothing is started: every process is already a rank.
//
// No process is left behind. A rank that fails leaves the job, which ends the exchanges of the
// others; ranks that still run after a grace period are killed. Ranks exit with this process,
// however it exits.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/comm/communicator.h"
#include "weft/communication/transport/job.h"
#include "weft/device/device.h"
#include "weft/program/tasks/program.h"
#include "weft/runtime/exec/gpu_exchanger.h"

namespace weft::run {

// Maximum number of ranks started on one machine.
constexpr std::int32_t kMostLocalRanks = 256;

// How ranks with local steps apply the mean of their parameters: see parameter_averages.h. The
// defaults use the mean itself.
struct OuterUpdate {
  double rate = 1, momentum = 0;
};

struct LocalRanksOptions {
  std::int32_t ranks = 1;
  // automatic, shm: processes with shared memory; tcp: processes with sockets; inproc: threads.
  comm::TransportKind transport = comm::TransportKind::automatic;
  std::chrono::milliseconds timeout{30'000};  // for the rendezvous
  std::chrono::milliseconds grace{5'000};     // for the other ranks to exit after the first

  // How each rank runs its program.
  int workers = 1;                // compute threads
  std::int64_t memory_limit = 0;  // bytes per rank; 0: its share of the machine's memory
  bool overlap = true;            // exchanges overlap compute
  bool shared_memory = true;      // other ranks can access a rank's memory
  bool spills = false;            // spill tensors beyond the limit to `spill_folder`
  std::string spill_folder = {};  // empty: the system's temporary folder
  // The algorithms of the program's collectives, in order; empty: chosen by the communicator.
  std::vector<program::ChosenAlgorithm> algorithms = {};
  OuterUpdate outer = {};

  // If all ranks are threads sharing one GPU: the GPU and their rendezvous. Null: processors.
  std::shared_ptr<device::Device> gpu = nullptr;
  std::shared_ptr<exec::GpuRendezvous> meeting = nullptr;
  double device_timeout = 0;  // seconds without progress until the GPU counts as hung; 0: none
  bool unit_by_unit = false;  // serialize its kernels, to find the one that fails
};

// Why the run failed: the first rank that failed, by time.
struct RankFailure {
  std::int32_t rank = 0;
  bool died = false;  // killed, or exited without reporting an error; see `error`
  Error error;
};

// The work of ranks within this process.
using OwnPart = std::function<Status(const std::shared_ptr<transport::Job>& job)>;

// The work of ranks in other processes: a function that their program finds by name, and its input.
// `bytes` is called only if such processes are started.
struct RankWork {
  std::string part;
  std::function<Result<std::vector<std::byte>>()> bytes;
};

// Returns when all ranks have ended. Rank 0 runs `mine` on the calling thread. So do ranks that are
// threads, and the ranks of a launcher.
std::optional<RankFailure> on_local_ranks(const LocalRanksOptions& options, const OwnPart& mine,
                                          const RankWork& work);

// The job that a launcher started this process for, joined on the first call. Null if there is none
// or it has one rank. Fails if the other ranks do not join.
Result<std::shared_ptr<transport::Job>> launched_job();

bool has_joined();  // whether launched_job() has joined one

// This process's rank in that job, 0 without a launcher; only rank 0 prints. Does not join the job.
std::int32_t launched_rank();
std::int32_t launched_ranks();  // 1 without a launcher

// Set by `weft launch --restarts` for its ranks: the number of restarts so far, and the launch's
// name.
std::int64_t launch_restarts();
std::string launch_name();  // empty: not started by it
// Whether the launcher may restart with fewer ranks; LOCAL n then uses as many as there are.
bool launch_is_elastic();

// Broadcasts rank 0's text to all ranks of the job; without a job, returns `mine`. Collective: all
// ranks must call it equally often, within the job's timeout.
Result<std::string> from_first_rank(std::string mine);

}  // namespace weft::run
