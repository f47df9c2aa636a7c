/* weft/comm/weft_comm.h -- collectives for C and whatever calls C.
 *
 *   weft_comm* comm;
 *   if (weft_connect(NULL, &comm) != WEFT_OK) fail(weft_last_error());
 *   weft_all_reduce(comm, gradient, gradient, n, WEFT_F32, WEFT_SUM);
 *   weft_close(comm);
 *
 * A function that fails answers WEFT_USER (a wrong argument), WEFT_WORLD (a dead rank, no memory) or
 * WEFT_INTERNAL (a mistake of Weft); weft_last_error() then says what happened, to the thread that called.
 * Counts are elements; types, operations, kinds and priorities are numbers below. docs/c_api.md is the guide.
 *
 * Threads: a group is called by one thread at a time, weft_wait() by any, and groups are independent of each
 * other. All ranks of a group make the same calls in the same order. Nothing prints, exits or throws, unless
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
enum weft_type { WEFT_F64, WEFT_F32, WEFT_F16, WEFT_BF16, WEFT_I8, WEFT_I32, WEFT_I64, WEFT_U8 };
enum weft_op { WEFT_SUM, WEFT_PRODUCT, WEFT_MIN, WEFT_MAX, WEFT_AVG };
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
} weft_call;

/* Of the thread that calls; valid until its next call fails. */
const char* weft_last_error(void);

/* Joins the job that the environment describes. `transport`: "shm", "tcp", ...; NULL: whatever suits. */
int weft_connect(const char* transport, weft_comm** comm);
int weft_split(weft_comm* comm, int32_t colour, int32_t key,
               weft_comm** part);                        /* *part is NULL for colour < 0 */
int weft_shrink(weft_comm* comm, weft_comm** survivors); /* refuses what may be the smaller half of a cut */
int weft_shrink_any(weft_comm* comm, weft_comm** survivors); /* does not */
void weft_close(weft_comm* comm);
int32_t weft_rank(const weft_comm* comm);
int32_t weft_size(const weft_comm* comm);

int weft_run(weft_comm* comm, const weft_call* call);
int weft_all_reduce(weft_comm* comm, const void* input, void* output, int64_t count, int type, int op);
int weft_reduce_scatter(weft_comm* comm, const void* input, void* output, int64_t count, int type, int op);
int weft_all_gather(weft_comm* comm, const void* input, void* output, int64_t count, int type);
int weft_all_to_all(weft_comm* comm, const void* input, void* output, int64_t count, int type);
int weft_broadcast(weft_comm* comm, const void* input, void* output, int64_t count, int type, int32_t root);
int weft_barrier(weft_comm* comm);

/* `done` may be NULL; it is called once, with WEFT_OK or what failed, on whatever thread finishes the call. */
typedef void (*weft_done)(int status, void* data);
int weft_start(weft_comm* comm, const weft_call* call, weft_done done, void* data, weft_work** work);
int weft_wait(weft_work* work);
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
