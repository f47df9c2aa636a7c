/* weft/communication/comm/weft_comm.h -- collectives for C and whatever calls C.
 *
 *   weft_comm* comm;
 *   if (weft_connect(NULL, &comm) != WEFT_OK) fail(weft_last_error());
 *   weft_all_reduce(comm, gradient, gradient, n, WEFT_F32, WEFT_SUM);
 *   weft_close(comm);
 *
 * A function that fails answers WEFT_USER (a wrong argument), WEFT_WORLD (a dead rank, no memory), WEFT_LATE (a
 * timeout) or WEFT_INTERNAL (a mistake of Weft); weft_last_error() then says what happened, to the thread that
 * called. A wrong argument changes nothing: the group goes on.
 * Counts are elements; types, operations, kinds and priorities are numbers below. docs/c_api.md is the guide.
 *
 * Threads: a group is called by one thread at a time, unless weft_options says several; weft_wait() by any, and
 * groups are independent of each other. All ranks of a group make the same calls in the same order. Nothing prints, exits or throws, unless
 * WEFT_EXPLAIN=1 in the environment asks which algorithms ran: that goes to the standard error.
 */
#ifndef WEFT_COMM_H
#define WEFT_COMM_H
#include <stddef.h>
#include <stdint.h>

#ifdef __GNUC__
#pragma GCC visibility push(default) /* what libweft.so exports */
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_comm weft_comm;
typedef struct weft_work weft_work;

#ifndef WEFT_STATUS /* also in weft.h: either header stands alone */
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
/* The last three are bitwise, of whole numbers only. */
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
  int64_t timeout_ms; /* 0: none, or that of the group. A call that is late ends the group, as a death does */
} weft_call;

typedef struct weft_options {
  const char* transport; /* NULL: whatever suits */
  int several_threads;   /* 1: any number of threads make calls at once */
  int64_t timeout_ms;    /* of calls that have none of their own; 0: none */
} weft_options;

/* Of the thread that calls; valid until its next call fails. */
const char* weft_last_error(void);

/* Joins the job that the environment describes. `transport`: "shm", "tcp", ...; NULL: whatever suits. */
int weft_connect(const char* transport, weft_comm** comm);
int weft_connect_with(const weft_options* options, weft_comm** comm);
int weft_split(weft_comm* comm, int32_t colour, int32_t key,
               weft_comm** part);                        /* *part is NULL for colour < 0 */
int weft_shrink(weft_comm* comm, weft_comm** survivors); /* refuses what may be the smaller half of a cut */
int weft_shrink_any(weft_comm* comm, weft_comm** survivors); /* does not */
/* A group of this one and of newcomers, who come after it: the group calls weft_grow(), each newcomer weft_join().
 * `where` is "HOST:PORT", where rank 0 listens, or a name on this machine; `secret` NULL: as the environment has
 * it; `timeout_ms` 0: what is usual. */
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

/* Blocks that differ: `counts` has one for every rank, the same on all of them. */
int weft_all_gatherv(weft_comm* comm, const void* input, void* output, const int64_t* counts, int type);
int weft_gatherv(weft_comm* comm, const void* input, void* output, const int64_t* counts, int type,
                 int32_t root);
int weft_scatterv(weft_comm* comm, const void* input, void* output, const int64_t* counts, int type,
                  int32_t root);
int weft_reduce_scatterv(weft_comm* comm, const void* input, void* output, const int64_t* counts, int type,
                         int op);
/* Each rank gives its own counts, one for every rank: what it has for it and what it gets from it. */
int weft_all_to_allv(weft_comm* comm, const void* input, const int64_t* give, void* output,
                     const int64_t* take, int type);

/* An operation of the caller's: left = left op right, where left holds what lower ranks gave. Associative. */
typedef void (*weft_combine)(const void* right, void* left, int64_t items, void* data);
typedef struct weft_operation {
  weft_combine combine;
  void* data;
  int64_t item; /* elements that belong together, 1 or more; divides every count */
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

/* Messages with tags, 0 or more. A receive takes one of any rank (WEFT_ANY), any tag, or both. `timeout_ms` 0:
 * none; one that is late answers WEFT_LATE, and nothing was sent or taken. */
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

/* What ended a group; WEFT_GOES_ON while nothing has. */
enum weft_cause { WEFT_GOES_ON = -1, WEFT_FAULT, WEFT_DEATH, WEFT_LEFT, WEFT_TIMEOUT, WEFT_ABORT };
int weft_comm_cause(const weft_comm* comm);
/* The ranks that died, ascending: up to `room` of them into `ranks`, and how many there are into `count`. */
int weft_comm_dead_ranks(const weft_comm* comm, int32_t* ranks, int32_t room, int32_t* count);
/* Calls under way on all ranks fail, and all later ones, with `why`. No process ends. */
int weft_abort(weft_comm* comm, int code, const char* why);
int weft_set_timeout(weft_comm* comm, int64_t timeout_ms); /* of later calls */

/* `done` may be NULL; it is called once, with WEFT_OK or what failed, on whatever thread finishes the call. */
typedef void (*weft_done)(int status, void* data);
int weft_start(weft_comm* comm, const weft_call* call, weft_done done, void* data, weft_work** work);
int weft_wait(weft_work* work);
int weft_wait_for(weft_work* work, int64_t timeout_ms, int* done); /* *done is 0: it goes on */
int weft_is_done(const weft_work* work);
int weft_cancel(weft_work* work);  /* 1: taken back on all ranks; 0: too late */
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
