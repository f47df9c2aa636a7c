// weft/runtime/run/local_ranks.h -- several ranks on this machine, each doing its part.
//
//   on_local_ranks({.ranks = 4}, mine, work)   this process: rank 0 ──────── mine(job) ──────▶ its answer
//                                                 ├─ spawn ─▶ rank 1 ── part(job, bytes) ──▶ exits
//                                                 ├─ spawn ─▶ rank 2 ── part(job, bytes) ──▶ exits
//                                                 └─ spawn ─▶ rank 3 ── part(job, bytes) ──▶ exits
//
// Rank 0 is the caller itself: what it finds needs no way back. The others start afresh (rank_program.h) and
// have nothing but the bytes of their work. Threads and TCP are for comparison. Under a launcher (mpirun, weft
// launch) nothing is started: every process is a rank already and does its part.
//
// Nobody is left behind: a rank that fails leaves the job, which ends the others' exchanges, and whoever is
// then still there after a while is killed. Ranks end with this process, however it ends.
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

// The most ranks that are started on one machine.
constexpr std::int32_t kMostLocalRanks = 256;

// What ranks that learned by themselves for some steps make of the mean of their parameters: see
// parameter_averages.h. As it is, they take it.
struct OuterUpdate {
  double rate = 1, momentum = 0;
};

struct LocalRanksOptions {
  std::int32_t ranks = 1;
  // automatic, shm: processes over shared memory; tcp: processes over sockets; inproc: threads.
  comm::TransportKind transport = comm::TransportKind::automatic;
  std::chrono::milliseconds timeout{30'000};  // to come together
  std::chrono::milliseconds grace{5'000};     // for the others to end after one has

  // How each rank runs its program.
  int workers = 1;                // threads that compute
  std::int64_t memory_limit = 0;  // bytes a rank may take; 0: its share of what the machine gives
  bool overlap = true;            // exchanges run beside computing
  bool shared_memory = true;      // a rank lies in memory that the others reach
  bool spills = false;            // what exceeds the limit goes to a file in `spill_folder`
  std::string spill_folder = {};  // empty: the system's for temporary files
  // What runs the collectives of its program, in their order; empty: what the communicator chooses.
  std::vector<program::ChosenAlgorithm> algorithms = {};
  OuterUpdate outer = {};

  // Where all ranks are threads that lie on one GPU: that, and where they meet. None: processors.
  std::shared_ptr<device::Device> gpu = nullptr;
  std::shared_ptr<exec::GpuMeeting> meeting = nullptr;
  double device_timeout = 0;  // seconds in which nothing gets done there until it counts as lost; 0: for ever
  bool unit_by_unit = false;  // there, to find which fails
};

// Why not all ranks came to their end: the first that failed, by time.
struct RankFailure {
  std::int32_t rank = 0;
  bool died = false;  // it was killed or ended without a word: `error` says how
  Error error;
};

// What a rank that lives in this process does.
using OwnPart = std::function<Status(const std::shared_ptr<transport::Job>& job)>;

// What ranks in processes of their own do: a part that their program knows by name, and the bytes it takes.
// Asked for only where there are any.
struct RankWork {
  std::string part;
  std::function<Result<std::vector<std::byte>>()> bytes;
};

// Returns when all ranks have ended. Rank 0 does `mine` on the calling thread, and so do threads and ranks of
// a launcher's.
std::optional<RankFailure> on_local_ranks(const LocalRanksOptions& options, const OwnPart& mine,
                                          const RankWork& work);

// The job that a launcher started this process for, joined once; null where there is none or it has one rank.
// Fails when the others do not come.
Result<std::shared_ptr<transport::Job>> launched_job();

bool has_joined();  // it did, before

// This process' rank in that job, 0 where there is none: rank 0 speaks for all. Joins nothing.
std::int32_t launched_rank();
std::int32_t launched_ranks();  // 1 where there is none

// What `weft launch --restarts` tells its ranks: how often they were started again, and a name for the launch.
std::int64_t launch_restarts();
std::string launch_name();  // empty: no such launch
// Whether it may start fewer of them: LOCAL n then has as many ranks as there are.
bool launch_is_elastic();

// What rank 0 of that job says, on all of its ranks; without one, `mine`. Collective: every rank calls
// it as often, and all must have come by the job's timeout.
Result<std::string> from_first_rank(std::string mine);

}  // namespace weft::run
