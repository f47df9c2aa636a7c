// weft/communication/transport/rendezvous.h -- how launched processes find each other.
//
//   weft launch, torchrun   RANK  WORLD_SIZE  MASTER_ADDR  MASTER_PORT
//   mpirun (Open MPI)       OMPI_COMM_WORLD_RANK  OMPI_COMM_WORLD_SIZE
//   mpiexec (MPICH, hydra)  PMI_RANK  PMI_SIZE
//   srun                    SLURM_PROCID  SLURM_NTASKS
//
//   rank 1 ──┐                        ┌─▶ rank 1 ◀─┐
//   rank 2 ──┼──▶ rank 0   hello      ├─▶ rank 2 ◀─┤   table of members; then a link between any two:
//   rank 3 ──┘                        └─▶ rank 3 ◀─┘   a Unix socket within a host, TCP between hosts
//
// Rank 0 listens. The others connect, prove that they know the job's secret (as does rank 0), and
// receive the table. torchrun runs its own store at MASTER_PORT, so its ranks use the next port.
// Without MASTER_ADDR all ranks must be on one machine and use an abstract Unix socket. The secret
// is never on a command line: see secret.h.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "weft/base/result.h"
#include "weft/communication/transport/job.h"

namespace weft::transport {

struct Rendezvous {
  std::int32_t rank = 0, ranks = 1;
  std::string address;  // of rank 0: a name, IPv4 or IPv6; empty: all on one machine
  std::uint16_t port = 0;
  std::string name;    // without an address: identifies this job among this user's
  std::string listen;  // the address that this rank listens on; empty: loopback if `address` is
                       // loopback or empty, otherwise the local address used to reach `address`
  int listener = -1;   // rank 0: a socket already listening on `port` (from weft launch);
                       // join() closes it
  std::string secret;
  std::chrono::milliseconds timeout{30'000};  // for bootstrap, and for detecting a lost machine
  std::optional<bool> secure = {};            // empty: from WEFT_SECURE; see docs/security.md
};

// Reads the variables above, and WEFT_PORT, WEFT_LISTEN, WEFT_TIMEOUT ("30 s"). Fails with
// instructions to start ranks if no launcher is recognized, or if the variables contradict each
// other (rank 4 of 4).
Result<Rendezvous> rendezvous_from_environment();
// The pipe that hangs up when the launcher exits, -1 if there is none. The caller must not close
// it.
int find_launcher();

// Connects to the other ranks. Fails with the expected and the missing ranks: "2 of 4 ranks
// connected within 30 s: rank 1 and rank 3 are missing".
Result<std::unique_ptr<Job>> join(const Rendezvous& rendezvous);

// 32 random bytes as hexadecimal digits.
std::string new_secret();

}  // namespace weft::transport
