/* weft/communication/comm/weft_comm.h -- collectives for C, and for languages that call C.
 *
 *   weft_comm* comm;
 *   if (weft_connect(NULL, &comm) != WEFT_OK) fail(weft_last_error());
 *   weft_all_reduce(comm, gradient, gradient, n, WEFT_F32, WEFT_SUM);
 *   weft_close(comm);
 *
 * A function that fails returns WEFT_USER (an invalid argument), WEFT_WORLD (a failed rank, out of
 * memory), WEFT_LATE (a timeout) or WEFT_INTERNAL (a bug in Weft); weft_last_error() then returns the
 * message, on the calling thread. An invalid argument has no effect: the group stays usable.
 * Counts are in elements; types, operations, kinds and priorities are the enumerators below. See
 * docs/c_api.md.
 *
 * Threads: one thread at a time may call a group, unless weft_options allows several. Any thread may
 * call weft_wait(), and groups are independent of each other. All ranks of a group make the same calls
 * in the same order. No function prints, exits or throws, except that WEFT_EXPLAIN=1 in the environment
 * reports the algorithms used to standard error.
 */
#ifndef WEFT_COMM_H
#define WEFT_COMM_H
#include <stddef.h>
#include <stdint.h>

#ifdef __GNUC__
#pragma GCC visibility push(default) /* exported by libweft.so */
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_comm weft_comm;
typedef struct weft_work weft_work;

#ifndef WEFT_STATUS /* also in weft.h: each header is self-contained */
#define WEFT_STATUS
enum weft_status { WEFT_OK = 0, WEFT_USER = 1, WEFT_WORLD = 2, WEFT_INTERNAL = 3 };
#endif
enum weft_late { WEFT_LATE = 4 };
enum weft_type {
  WEFT_F64,
  WEFT_F32,
  WEFT_F16,
  WEFT_BF16,
  WEFT_I8,
  WEFT_I32,
  WEFT_I64,
  WEFT_U8,
  WEFT_I16,
  WEFT_U16,
  WEFT_U32,
  WEFT_U64
};
/* The last three are bitwise, for integers only. */
enum weft_op { WEFT_SUM, WEFT_PRODUCT, WEFT_MIN, WEFT_MAX, WEFT_AVG, WEFT_AND, WEFT_OR, WEFT_XOR };
enum weft_priority { WEFT_HIGH, WEFT_NORMAL, WEFT_LOW };
enum weft_kind {
  WEFT_ALL_REDUCE,
  WEFT_REDUCE_SCATTER,
  WEFT_ALL_GATHER,
  WEFT_ALL_TO_ALL,
  WEFT_BROADCAST,
  WEFT_REDUCE,
  WEFT_GATHER,
  WEFT_SCATTER,
  WEFT_SEND,
  WEFT_BARRIER
};

typedef struct weft_call {
  int kind;
  const void* input;
  void* output;
  int64_t count;
  int type;
  int op;
  int32_t root; /* send: the sender */
  int32_t peer; /* send: the receiver */
  const int64_t* counts;
  int64_t counts_length; /* 0: all blocks have `count` elements */
  int priority;
  int64_t timeout_ms; /* 0: none, or the group's. A timeout ends the group, as a failed rank does */
} weft_call;

typedef struct weft_options {
  const char* transport; /* NULL: automatic */
  int several_threads;   /* 1: any number of threads may make calls at once */
  int64_t timeout_ms;    /* default timeout of calls; 0: none */
} weft_options;

/* The calling thread's last error; valid until its next failing call. */
const char* weft_last_error(void);

/* Joins the job that the environment describes. `transport`: "shm", "tcp", ...; NULL: automatic. */
int weft_connect(const char* transport, weft_comm** comm);
int weft_connect_with(const weft_options* options, weft_comm** comm);
int weft_split(weft_comm* comm, int32_t colour, int32_t key,
               weft_comm** part);                            /* *part is NULL for colour < 0 */
int weft_shrink(weft_comm* comm, weft_comm** survivors);     /* refused if it may be a minority */
int weft_shrink_any(weft_comm* comm, weft_comm** survivors); /* allows a minority */
/* A group of this group's ranks followed by new ranks: the group calls weft_grow(), each new rank
 * weft_join(). `where` is "HOST:PORT", where rank 0 listens, or a name on this machine; `secret` NULL:
 * from the environment; `timeout_ms` 0: default. */
int weft_grow(weft_comm* comm, int32_t newcomers, const char* where, const char* secret, int64_t timeout_ms,
              weft_comm** grown);
int weft_join(const char* where, const char* secret, int64_t timeout_ms, int32_t rank, int32_t ranks,
              const weft_options* options, weft_comm** comm);
void weft_close(weft_comm* comm);
int32_t weft_rank(const weft_comm* comm);
int32_t weft_size(const weft_comm* comm);

int weft_run(weft_comm* comm, const weft_call* call);
int weft_all_reduce(weft_comm* comm, const void* input, void* output, int64_t count, int type, int op);
int weft_reduce_scatter(weft_comm* comm, const void* input, void* output, int64_t count, int type, int op);
int weft_all_gather(weft_comm* comm, const void* input, void* output, int64_t count, int type);
int weft_all_to_all(weft_comm* comm, const void* input, void* output, int64_t count, int type);
int weft_broadcast(weft_comm* comm, const void* input, void* output, int64_t count, int type, int32_t root);
int weft_reduce(weft_comm* comm, const void* input, void* output, int64_t count, int type, int op,
                int32_t root);
int weft_gather(weft_comm* comm, const void* input, void* output, int64_t count, int type, int32_t root);
int weft_scatter(weft_comm* comm, const void* input, void* output, int64_t count, int type, int32_t root);
int weft_send(weft_comm* comm, const void* input, int64_t count, int type, int32_t to);
int weft_receive(weft_comm* comm, void* output, int64_t count, int type, int32_t from);
int weft_scan(weft_comm* comm, const void* input, void* output, int64_t count, int type, int op);
int weft_exclusive_scan(weft_comm* comm, const void* input, void* output, int64_t count, int type, int op);
int weft_barrier(weft_comm* comm);

/* Blocks of different sizes: `counts` has one entry per rank, the same on all ranks. */
int weft_all_gatherv(weft_comm* comm, const void* input, void* output, const int64_t* counts, int type);
int weft_gatherv(weft_comm* comm, const void* input, void* output, const int64_t* counts, int type,
                 int32_t root);
int weft_scatterv(weft_comm* comm, const void* input, void* output, const int64_t* counts, int type,
                  int32_t root);
int weft_reduce_scatterv(weft_comm* comm, const void* input, void* output, const int64_t* counts, int type,
                         int op);
/* Each rank passes its own counts, one per rank: elements sent to it, and received from it. */
int weft_all_to_allv(weft_comm* comm, const void* input, const int64_t* give, void* output,
                     const int64_t* take, int type);

/* A user-defined operation: left = left op right, where left holds the result of lower ranks. Must be
 * associative. */
typedef void (*weft_combine)(const void* right, void* left, int64_t items, void* data);
typedef struct weft_operation {
  weft_combine combine;
  void* data;
  int64_t item; /* elements per item, 1 or more; divides every count */
} weft_operation;
int weft_all_reduce_by(weft_comm* comm, const void* input, void* output, int64_t count, int type,
                       const weft_operation* op);
int weft_reduce_by(weft_comm* comm, const void* input, void* output, int64_t count, int type,
                   const weft_operation* op, int32_t root);
int weft_reduce_scatter_by(weft_comm* comm, const void* input, void* output, int64_t count, int type,
                           const weft_operation* op);
int weft_scan_by(weft_comm* comm, const void* input, void* output, int64_t count, int type,
                 const weft_operation* op);
int weft_exclusive_scan_by(weft_comm* comm, const void* input, void* output, int64_t count, int type,
                           const weft_operation* op);

/* Tagged messages; tags are 0 or greater. A receive may match any rank (WEFT_ANY), any tag, or both.
 * `timeout_ms` 0: none; a timeout returns WEFT_LATE, and nothing was sent or received. */
enum weft_any { WEFT_ANY = -1 };
typedef struct weft_received {
  int32_t from, tag;
  int64_t count;
  int type;
} weft_received;
int weft_send_tagged(weft_comm* comm, const void* input, int64_t count, int type, int32_t to, int32_t tag,
                     int64_t timeout_ms);
int weft_receive_tagged(weft_comm* comm, void* output, int64_t room, int type, int32_t from, int32_t tag,
                        int64_t timeout_ms, weft_received* received); /* may be NULL */
int weft_probe(weft_comm* comm, int32_t from, int32_t tag, int* found, weft_received* received);

/* What ended a group; WEFT_GOES_ON while it is usable. */
enum weft_cause { WEFT_GOES_ON = -1, WEFT_FAULT, WEFT_DEATH, WEFT_LEFT, WEFT_TIMEOUT, WEFT_ABORT };
int weft_comm_cause(const weft_comm* comm);
/* The failed ranks, ascending: writes up to `room` of them to `ranks`, and their number to `count`. */
int weft_comm_dead_ranks(const weft_comm* comm, int32_t* ranks, int32_t room, int32_t* count);
/* Fails all current and later calls on all ranks with `why`. No process exits. */
int weft_abort(weft_comm* comm, int code, const char* why);
int weft_set_timeout(weft_comm* comm, int64_t timeout_ms); /* of later calls */

/* `done` may be NULL; it is called once, with WEFT_OK or the error status, on the thread that completes
 * the call. */
typedef void (*weft_done)(int status, void* data);
int weft_start(weft_comm* comm, const weft_call* call, weft_done done, void* data, weft_work** work);
int weft_wait(weft_work* work);
int weft_wait_for(weft_work* work, int64_t timeout_ms, int* done); /* *done is 0: not done yet */
int weft_is_done(const weft_work* work);
int weft_cancel(weft_work* work);  /* 1: cancelled on all ranks; 0: too late */
void weft_forget(weft_work* work); /* frees the handle; the call goes on */

int weft_allocate(weft_comm* comm, size_t bytes, void** memory);
void weft_free(weft_comm* comm, void* memory);

#ifdef __cplusplus
}
#endif
#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#endif
