// weft/communication/transport/rendezvous.h -- how processes that a launcher started find each other.
//
//   weft launch, torchrun   RANK  WORLD_SIZE  MASTER_ADDR  MASTER_PORT
//   mpirun (Open MPI)       OMPI_COMM_WORLD_RANK  OMPI_COMM_WORLD_SIZE
//   mpiexec (MPICH, hydra)  PMI_RANK  PMI_SIZE
//   srun                    SLURM_PROCID  SLURM_NTASKS
//
//   rank 1 ──┐                        ┌─▶ rank 1 ◀─┐
//   rank 2 ──┼──▶ rank 0   hello      ├─▶ rank 2 ◀─┤   table of members; then a line between any two:
//   rank 3 ──┘                        └─▶ rank 3 ◀─┘   a Unix socket within a host, TCP between hosts
//
// Rank 0 listens, the others come to it, prove that they know the job's secret (and it to them), and learn of
// each other. torchrun keeps a store of its own at MASTER_PORT: its ranks meet at the port after it. Without
// MASTER_ADDR all ranks must be on one machine and meet by a name that no file system knows. The secret is
// never on a command line: see secret.h.
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
  std::string name;    // without an address: what tells this job from others of this user
  std::string listen;  // the address that this rank listens on; empty: loopback where `address` is
                       // loopback or empty, else the one that leads to `address`
  int listener = -1;   // rank 0: a socket that already listens on `port` (weft launch hands it down);
                       // join() closes it
  std::string secret;
  std::chrono::milliseconds timeout{30'000};  // to come together, and of silence from a machine
  std::optional<bool> secure = {};            // none: as WEFT_SECURE says; see docs/security.md
};

// What the environment says: see above, and WEFT_PORT, WEFT_LISTEN, WEFT_TIMEOUT ("30 s"). Fails when no
// launcher is recognised, saying how to start ranks, or when it contradicts itself (rank 4 of 4).
Result<Rendezvous> rendezvous_from_environment();
// The pipe that hangs up when the launcher is gone, -1 where there is none; it stays the environment's.
int find_launcher();

// Comes together with the others. Fails with what was expected and who was missing: "2 of 4 ranks came within
// 30 s: rank 1 and rank 3 are missing".
Result<std::unique_ptr<Job>> join(const Rendezvous& rendezvous);

// 32 random bytes as hexadecimal digits.
std::string new_secret();

}  // namespace weft::transport
