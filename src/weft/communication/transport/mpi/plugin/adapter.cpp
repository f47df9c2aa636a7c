// Implements the table of table.h with the MPI that this file is compiled against. The build makes
// one shared object per installed MPI; no other file includes <mpi.h>.
#include "weft/communication/transport/mpi/table.h"

// Only the C API: the standard has removed the C++ bindings.
#define OMPI_SKIP_MPICXX
#define MPICH_SKIP_MPICXX
#include <mpi.h>

#include <climits>
#include <cstdio>
#include <cstring>

namespace {

static_assert(sizeof(MPI_Request) <= sizeof(WeftMpiRequest));

MPI_Comm communicator = MPI_COMM_NULL;
bool initialized_here = false;

MPI_Request unpack(const WeftMpiRequest& from) {
  MPI_Request request;
  std::memcpy(&request, &from, sizeof request);
  return request;
}

void pack(MPI_Request request, WeftMpiRequest* to) {
  *to = {};
  std::memcpy(to, &request, sizeof request);
}

int start(void*, int* rank, int* ranks, int* most_tag) {
  int done = 0;
  int level = MPI_THREAD_SINGLE;
  if (int code = MPI_Initialized(&done)) return code;
  if (done != 0) {
    if (int code = MPI_Query_thread(&level)) return code;
  } else {
    if (int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level)) return code;
    initialized_here = true;
  }
  if (level < MPI_THREAD_SERIALIZED) return MPI_ERR_UNSUPPORTED_OPERATION;
  if (int code = MPI_Comm_dup(MPI_COMM_WORLD, &communicator)) return code;
  if (int code = MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN)) return code;

  int* largest = nullptr;
  int known = 0;
  if (int code = MPI_Comm_get_attr(communicator, MPI_TAG_UB, &largest, &known)) return code;
  constexpr int kPromised = 32767;  // guaranteed by the standard
  *most_tag = known != 0 ? *largest : kPromised;
  if (int code = MPI_Comm_rank(communicator, rank)) return code;
  return MPI_Comm_size(communicator, ranks);
}

void finish(void*) {
  int finalized = 0;
  if (MPI_Finalized(&finalized) != MPI_SUCCESS || finalized != 0 || communicator == MPI_COMM_NULL) return;
  MPI_Comm_free(&communicator);
  if (initialized_here) MPI_Finalize();
}

int send(void*, const void* bytes, std::int64_t size, int to, int tag, WeftMpiRequest* request) {
  if (size > INT_MAX) return MPI_ERR_COUNT;
  MPI_Request posted = MPI_REQUEST_NULL;
  const int code = MPI_Issend(bytes, static_cast<int>(size), MPI_BYTE, to, tag, communicator, &posted);
  pack(posted, request);
  return code;
}

int receive(void*, void* bytes, std::int64_t room, int from, int tag, WeftMpiRequest* request) {
  if (room > INT_MAX) return MPI_ERR_COUNT;
  MPI_Request posted = MPI_REQUEST_NULL;
  const int code = MPI_Irecv(bytes, static_cast<int>(room), MPI_BYTE, from, tag, communicator, &posted);
  pack(posted, request);
  return code;
}

int test(void*, WeftMpiRequest* request, int* done, std::int64_t* size) {
  MPI_Request posted = unpack(*request);
  MPI_Status status;
  const int code = MPI_Test(&posted, done, &status);
  pack(posted, request);
  if (code != MPI_SUCCESS || *done == 0) return code;
  int count = 0;
  MPI_Get_count(&status, MPI_BYTE, &count);
  *size = count == MPI_UNDEFINED ? 0 : count;
  return code;
}

void cancel(void*, WeftMpiRequest* request) {
  MPI_Request posted = unpack(*request);
  MPI_Cancel(&posted);
  MPI_Wait(&posted, MPI_STATUS_IGNORE);
  pack(posted, request);
}

int probe(void*, int tag, int* found, int* from, int* its_tag, std::int64_t* size) {
  MPI_Status status;
  const int sought = tag == kWeftMpiAnyTag ? MPI_ANY_TAG : tag;
  const int code = MPI_Iprobe(MPI_ANY_SOURCE, sought, communicator, found, &status);
  if (code != MPI_SUCCESS || *found == 0) return code;
  int count = 0;
  MPI_Get_count(&status, MPI_BYTE, &count);
  *from = status.MPI_SOURCE;
  *its_tag = status.MPI_TAG;
  *size = count;
  return code;
}

int barrier(void*, WeftMpiRequest* request) {
  MPI_Request posted = MPI_REQUEST_NULL;
  const int code = MPI_Ibarrier(communicator, &posted);
  pack(posted, request);
  return code;
}

void describe(void*, int code, char* text, std::size_t room) {
  char whole[MPI_MAX_ERROR_STRING + 1] = {};
  int length = 0;
  MPI_Error_string(code, whole, &length);
  std::snprintf(text, room, "%s", whole);
}

void abort(void*, int code) { MPI_Abort(communicator, code); }

#ifdef OPEN_MPI
constexpr const char* kLibrary = "Open MPI";
#else
constexpr const char* kLibrary = "MPICH";
#endif

constexpr WeftMpiTable kTable = {.version = kWeftMpiVersion,
                                 .context = nullptr,
                                 .library = kLibrary,
                                 .start = start,
                                 .finish = finish,
                                 .send = send,
                                 .receive = receive,
                                 .test = test,
                                 .cancel = cancel,
                                 .probe = probe,
                                 .barrier = barrier,
                                 .describe = describe,
                                 .abort = abort};

}  // namespace

extern "C" __attribute__((visibility("default"))) const WeftMpiTable* weft_mpi_table() { return &kTable; }
