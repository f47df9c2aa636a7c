// weft/communication/transport/mpi/table.h -- the few MPI functions that Weft needs, as a plain C
// table.
//
//   weft ──dlopen──▶ weft_mpi_openmpi.so ──▶ libmpi.so      weft_mpi_table() -> WeftMpiTable
//                or  weft_mpi_mpich.so   ──▶ libmpich.so
//
// Open MPI and MPICH have the same functions but different ABIs. So the code that includes <mpi.h>
// is compiled once against each (plugin/adapter.cpp), and only this table crosses the boundary. A
// table of another version is refused. Functions return 0 or MPI's error code, which describe()
// explains. One thread at a time calls them. `context` belongs to the table and is passed to every
// function.
#pragma once
#include <cstddef>
#include <cstdint>

extern "C" {

inline constexpr std::uint32_t kWeftMpiVersion = 1;
inline constexpr int kWeftMpiAnyTag = -1;

// An opaque MPI_Request. Must not be used after it has completed or was cancelled.
struct WeftMpiRequest {
  std::uint64_t handle;
};

struct WeftMpiTable {
  std::uint32_t version;
  void* context;
  const char* library;  // "Open MPI"

  // Initializes MPI unless the program did, and creates Weft's own communicator. most_tag: the
  // largest tag.
  int (*start)(void* context, int* rank, int* ranks, int* most_tag);
  // Finalizes MPI if start() initialized it.
  void (*finish)(void* context);

  // A synchronous send (MPI_Issend): completes when the receiver has matched it, never into an
  // unexpected-message buffer. That is the credit of connection.h.
  int (*send)(void* context, const void* bytes, std::int64_t size, int to, int tag, WeftMpiRequest* request);
  int (*receive)(void* context, void* bytes, std::int64_t room, int from, int tag, WeftMpiRequest* request);
  // `size`: of a received message. An error completes the request.
  int (*test)(void* context, WeftMpiRequest* request, int* done, std::int64_t* size);
  // Cancels a receive and waits for that, which involves no other rank.
  void (*cancel)(void* context, WeftMpiRequest* request);

  // Whether a message with that tag (any tag for kWeftMpiAnyTag) has arrived, from any rank.
  int (*probe)(void* context, int tag, int* found, int* from, int* its_tag, std::int64_t* size);
  // Completes when all ranks have called it.
  int (*barrier)(void* context, WeftMpiRequest* request);

  void (*describe)(void* context, int code, char* text, std::size_t room);
  void (*abort)(void* context, int code);
};

typedef const WeftMpiTable* (*WeftMpiTableFunction)(void);
}
