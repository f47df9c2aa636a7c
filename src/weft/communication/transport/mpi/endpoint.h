// weft/communication/transport/mpi/endpoint.h -- the transport that an MPI which already runs provides.
//
//   Outgoing ─ MPI_Issend ─ (whatever MPI uses: verbs, shared memory, TCP) ─ MPI_Irecv ─ Incoming
//
// For machines whose network only their MPI can drive. Each wire is a tag of the receiver's. Works with any
// kind of job whose ranks were all started by the same mpirun: with mpi/job.h the launcher alone notices
// deaths, with a process job (rendezvous.h) survivors are told which rank died, if the launcher lets them
// live.
//
// MPI offers no way to sleep until any of many things happens, so wait() tests and yields for a while and
// then naps, 50 us at first and 1 ms at last: an idle rank costs little, and what comes late may be seen up
// to 1 ms later still.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/transport/endpoint.h"
#include "weft/communication/transport/job.h"
#include "weft/communication/transport/mpi/library.h"

namespace weft::transport::mpi {

// Of the group of `members` (job ranks, ascending); `group` tells its exchanges from those of other groups.
Result<std::unique_ptr<Endpoint>> make_endpoint(std::shared_ptr<Job> job, std::vector<std::int32_t> members,
                                                std::uint64_t group, std::shared_ptr<Library> library);

// The same over the MPI that Library::load() finds.
Result<std::unique_ptr<Endpoint>> make_endpoint(std::shared_ptr<Job> job, std::vector<std::int32_t> members,
                                                std::uint64_t group);

}  // namespace weft::transport::mpi
