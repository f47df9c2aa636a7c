// weft/communication/transport/mpi/endpoint.h -- a transport over an MPI library that is already
// running.
//
//   Outgoing ─ MPI_Issend ─ (whatever MPI uses: verbs, shared memory, TCP) ─ MPI_Irecv ─ Incoming
//
// For machines whose network only their MPI can drive. Each wire is a tag of the receiver. Works
// with any kind of job whose ranks were all started by the same mpirun. With mpi/job.h only the
// launcher detects failures. With a process job (rendezvous.h) survivors are notified which rank
// failed, if the launcher keeps them running.
//
// MPI cannot sleep until any of several events happens. So wait() tests and yields for a while and
// then naps, first for 50 us and finally for 1 ms. An idle rank costs little, but may notice a late
// event up to 1 ms later.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/transport/endpoint.h"
#include "weft/communication/transport/job.h"
#include "weft/communication/transport/mpi/library.h"

namespace weft::transport::mpi {

// For the group of `members` (job ranks, ascending); `group` separates its exchanges from those of
// other groups.
Result<std::unique_ptr<Endpoint>> make_endpoint(std::shared_ptr<Job> job, std::vector<std::int32_t> members,
                                                std::uint64_t group, std::shared_ptr<Library> library);

// The same over the MPI that Library::load() returns.
Result<std::unique_ptr<Endpoint>> make_endpoint(std::shared_ptr<Job> job, std::vector<std::int32_t> members,
                                                std::uint64_t group);

}  // namespace weft::transport::mpi
