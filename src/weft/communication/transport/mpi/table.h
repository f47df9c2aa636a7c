// weft/communication/transport/mpi/table.h -- the few functions of an MPI that Weft needs, as a plain C table.
//
//   weft ──dlopen──▶ weft_mpi_openmpi.so ──▶ libmpi.so      weft_mpi_table() -> WeftMpiTable
//                or  weft_mpi_mpich.so   ──▶ libmpich.so
//
// Open MPI and MPICH have the same functions and different binary interfaces, so what includes <mpi.h> is
// compiled once against each (plugin/adapter.cpp) and only this table crosses the border. A table of another
// version is refused. Functions answer 0, or MPI's error code, which describe() explains. They are called
// by one thread at a time. `context` is the table's own and is passed back to every function.
#pragma once
#include <cstddef>
#include <cstdint>

extern "C" {

inline constexpr std::uint32_t kWeftMpiVersion = 1;
inline constexpr int kWeftMpiAnyTag = -1;

// An MPI_Request, whatever that is here. One that has completed or was cancelled must not be used again.
struct WeftMpiRequest {
  std::uint64_t handle;
};

struct WeftMpiTable {
  std::uint32_t version;
  void* context;
  const char* library;  // "Open MPI"

  // Initializes MPI unless the program did, and makes a communicator of our own. most_tag: the largest tag.
  int (*start)(void* context, int* rank, int* ranks, int* most_tag);
  // Finalizes MPI if start() initialized it.
  void (*finish)(void* context);

  // A synchronous send (MPI_Issend): it completes when the receiver has taken it, never into a buffer that
  // nobody asked for. That is the credit of connection.h.
  int (*send)(void* context, const void* bytes, std::int64_t size, int to, int tag, WeftMpiRequest* request);
  int (*receive)(void* context, void* bytes, std::int64_t room, int from, int tag, WeftMpiRequest* request);
  // `size`: of a message received. An error completes the request.
  int (*test)(void* context, WeftMpiRequest* request, int* done, std::int64_t* size);
  // Takes a receive back and waits for that, which needs nobody else.
  void (*cancel)(void* context, WeftMpiRequest* request);

  // Whether a message of that tag, or of any for kWeftMpiAnyTag, has come from anyone.
  int (*probe)(void* context, int tag, int* found, int* from, int* its_tag, std::int64_t* size);
  // Done when all ranks have called it.
  int (*barrier)(void* context, WeftMpiRequest* request);

  void (*describe)(void* context, int code, char* text, std::size_t room);
  void (*abort)(void* context, int code);
};

typedef const WeftMpiTable* (*WeftMpiTableFunction)(void);
}
