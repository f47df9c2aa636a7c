// weft/communication/transport/mpi/job.h -- a job whose ranks are those of a running MPI.
//
//   mpirun -n 4 PROGRAM  ──▶  Library::load()  ──▶  join()     needs no address, port or secret
//
// Messages of the job are MPI messages with tag 0. A thread polls for them, napping up to 1 ms
// while none arrive; threads that wait in exchange() poll as well.
//
// MPI limits it in two ways. It detects ranks that leave but not failures, since the launcher kills
// all ranks when one fails. And descriptors are not transferred (Parcel::descriptor arrives as -1),
// so shared memory needs a process job (rendezvous.h), which also runs under mpirun.
#pragma once
#include <chrono>
#include <memory>

#include "weft/base/result.h"
#include "weft/communication/transport/job.h"
#include "weft/communication/transport/mpi/library.h"

namespace weft::transport::mpi {

// Joins all ranks of the launcher's job; collective.
Result<std::unique_ptr<Job>> join(std::shared_ptr<Library> library, std::chrono::milliseconds timeout);

}  // namespace weft::transport::mpi
