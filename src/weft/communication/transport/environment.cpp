#include <sys/socket.h>
#include <sys/stat.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "weft/base/number.h"
#include "weft/base/units.h"
#include "weft/communication/transport/rendezvous.h"
#include "weft/communication/transport/secret.h"
#include "weft/communication/transport/tcp/socket.h"
#include "weft/communication/transport/variable.h"

namespace weft::transport {
namespace {

constexpr std::int64_t kMostRanks = 65536;  // links between all pairs of ranks fail long before

// The variables in which launchers pass rank and size; the first launcher whose rank is set is
// used.
struct Launcher {
  std::string_view name;
  const char *rank, *ranks;
};
constexpr Launcher kLaunchers[] = {
    {"weft launch or torchrun", "RANK", "WORLD_SIZE"},
    {"mpirun (Open MPI)", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"mpiexec (MPICH)", "PMI_RANK", "PMI_SIZE"},
    {"srun", "SLURM_PROCID", "SLURM_NTASKS"},
};

Result<std::int64_t> number(const char* name, std::int64_t low, std::int64_t high) {
  const std::string_view text = variable(name);
  if (const auto value = read_number<std::int64_t>(text, low, high)) return *value;
  return user_error(
      fmt::format("{} must be a whole number from {} to {}: '{}'", name, low, high, text.substr(0, 40)));
}

// MPICH's launcher gives ranks no job name, but a socket to a process that is the same for all of
// them on a machine.
std::string hydra_name() {
  const Result<std::int64_t> socket = number("PMI_FD", 0, 1 << 20);
  ucred other = {};
  socklen_t length = sizeof other;
  if (!socket.ok() ||
      ::getsockopt(static_cast<int>(*socket), SOL_SOCKET, SO_PEERCRED, &other, &length) != 0 ||
      other.pid <= 0) {
    return {};
  }
  return fmt::format("hydra {}", other.pid);
}

// Identifies this job among those of the same launcher, if the launcher does.
std::string job_name() {
  for (const char* name : {"WEFT_JOB", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID"}) {
    if (const auto value = variable(name); !value.empty()) return fmt::format("{}={}", name, value);
  }
  if (const auto job = variable("SLURM_JOB_ID"); !job.empty() && variable("PMI_FD").empty()) {
    return fmt::format("slurm {}.{}", job, variable("SLURM_STEP_ID"));
  }
  return hydra_name();
}

Status find_place(Rendezvous& out) {
  for (const Launcher& launcher : kLaunchers) {
    if (variable(launcher.rank).empty()) continue;
    WEFT_TRY(ranks, number(launcher.ranks, 1, kMostRanks));
    WEFT_TRY(rank, number(launcher.rank, 0, kMostRanks));
    if (rank >= ranks) {
      return user_error(fmt::format("contradictory environment: {} is {}, {} is {}", launcher.rank, rank,
                                    launcher.ranks, ranks),
                        "ranks count from 0");
    }
    out.rank = static_cast<std::int32_t>(rank);
    out.ranks = static_cast<std::int32_t>(ranks);
    return {};
  }
  return user_error(
      "cannot tell which rank this is: none of RANK, OMPI_COMM_WORLD_RANK, PMI_RANK and SLURM_PROCID is set",
      "weft launch -n 4 PROGRAM starts four ranks on this machine; torchrun, mpirun and srun also work");
}

Status find_rendezvous_point(Rendezvous& out) {
  out.address = variable("MASTER_ADDR");
  if (out.address.empty()) {
    out.name = job_name();
    if (!out.name.empty() || out.ranks == 1) return {};
    return user_error(
        "cannot identify this job: no MASTER_ADDR and no job id from a launcher",
        "set MASTER_ADDR and MASTER_PORT; or, when all ranks are on one machine, WEFT_JOB to a name "
        "for this run");
  }
  if (!variable("WEFT_PORT").empty()) {
    WEFT_TRY(port, number("WEFT_PORT", 1, 65535));
    out.port = static_cast<std::uint16_t>(port);
    return {};
  }
  if (variable("MASTER_PORT").empty()) {
    return user_error("MASTER_ADDR is set, but MASTER_PORT is not", "set MASTER_PORT, or WEFT_PORT");
  }
  // torchrun's agent listens on MASTER_PORT itself.
  const bool taken = !variable("TORCHELASTIC_RUN_ID").empty();
  WEFT_TRY(port, number("MASTER_PORT", 1, taken ? 65534 : 65535));
  out.port = static_cast<std::uint16_t>(port + (taken ? 1 : 0));
  return {};
}

// The variable outlives the socket: in a later join or a child, the number may be another file.
int find_listener(const Rendezvous& rendezvous) {
  if (rendezvous.rank != 0 || variable("WEFT_LISTENER_FD").empty()) return -1;
  const Result<std::int64_t> given = number("WEFT_LISTENER_FD", 3, 1 << 20);
  if (!given.ok()) return -1;
  tcp::Socket socket(static_cast<int>(*given));
  int listens = 0;
  socklen_t length = sizeof listens;
  const bool known = ::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) == 0;
  const Result<tcp::Address> address =
      known ? tcp::local_address(socket) : Result<tcp::Address>(tcp::Address());
  const int descriptor = socket.release();
  return known && listens == 1 && address.ok() && address->port() == rendezvous.port ? descriptor : -1;
}

Status find_timeout(Rendezvous& out) {
  const std::string_view text = variable("WEFT_TIMEOUT");
  if (text.empty()) return {};
  const Result<Quantity> time = parse_quantity(text);
  constexpr double kShortest = 0.01, kLongest = 7 * 86400.0;
  if (!time.ok() || time->dimension != Dimension::seconds ||
      !(time->value >= kShortest && time->value <= kLongest)) {
    return user_error(
        fmt::format("WEFT_TIMEOUT must be a time from 10 ms to a week: '{}'", text.substr(0, 40)),
        "write it with its unit: 30 s");
  }
  out.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(time->value * 1000.0));
  return {};
}

}  // namespace

Result<Rendezvous> rendezvous_from_environment() {
  Rendezvous out;
  WEFT_TRY_STATUS(find_place(out));
  WEFT_TRY_STATUS(find_rendezvous_point(out));
  WEFT_TRY_STATUS(find_timeout(out));
  out.listen = variable("WEFT_LISTEN");
  if (out.ranks > 1) {
    WEFT_TRY(secret, find_secret());
    out.secret = std::move(secret);
  } else {
    out.secret = new_secret();
  }
  out.listener = find_listener(out);
  return out;
}

int find_launcher() {
  if (variable("WEFT_LAUNCHER_FD").empty()) return -1;
  const Result<std::int64_t> given = number("WEFT_LAUNCHER_FD", 3, 1 << 20);
  struct stat about = {};
  if (!given.ok() || ::fstat(static_cast<int>(*given), &about) != 0 || !S_ISFIFO(about.st_mode)) return -1;
  return static_cast<int>(*given);
}

}  // namespace weft::transport
