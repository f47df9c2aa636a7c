// weft/communication/transport/mpi/job.h -- a job whose ranks are those of an MPI that already runs.
//
//   mpirun -n 4 PROGRAM  ──▶  Library::load()  ──▶  join()     no address, no port, no secret to agree on
//
// Messages of the job are MPI messages of tag 0. A thread looks for them, napping up to 1 ms while none come;
// whoever waits in exchange() looks as well.
//
// What it cannot do, because MPI cannot: it learns of ranks that leave but of no death, since the launcher
// ends all ranks when one dies; and descriptors do not travel (Parcel::descriptor arrives as -1), so shared
// memory needs a process job (rendezvous.h), which runs under mpirun as well.
#pragma once
#include <chrono>
#include <memory>

#include "weft/base/result.h"
#include "weft/communication/transport/job.h"
#include "weft/communication/transport/mpi/library.h"

namespace weft::transport::mpi {

// All ranks of the launcher's job; collective.
Result<std::unique_ptr<Job>> join(std::shared_ptr<Library> library, std::chrono::milliseconds timeout);

}  // namespace weft::transport::mpi
