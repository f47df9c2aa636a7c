/* weft/app/session/weft.h -- the C interface of Weft: executes statements and returns answers.
 *
 *   weft_session* session;
 *   weft_answer* answer;
 *   if (weft_session_open(&session) != WEFT_OK) fail();
 *   if (weft_session_execute(session, "EXPLAIN TRAIN gpt2 ON dgx_h100", WEFT_JSON, &answer) == WEFT_OK)
 *     puts(weft_answer_text(answer));
 *   else
 *     fputs(weft_answer_error(answer)->report, stderr);
 *   weft_answer_free(answer);
 *   weft_session_close(session);
 *
 * A session holds a catalog that starts with the shipped models and clusters, and the settings given
 * so far. A statement that fails changes nothing. docs/c_api.md is the guide; collectives are in
 * weft_comm.h.
 *
 * Threads: only one thread may use a session at a time, except for weft_session_interrupt(). Sessions
 * are independent of each other. Callbacks run on the executing thread. Nothing prints, exits or
 * throws.
 */
#ifndef WEFT_H
#define WEFT_H
#include <stddef.h>
#include <stdint.h>

#ifdef __GNUC__
#pragma GCC visibility push(default) /* exported by libweft.so */
#endif
#ifdef __cplusplus
extern "C" {
#endif

#ifndef WEFT_STATUS /* also in weft_comm.h: each header can be used alone */
#define WEFT_STATUS
enum weft_status { WEFT_OK = 0, WEFT_USER = 1, WEFT_WORLD = 2, WEFT_INTERNAL = 3 };
#endif
enum { WEFT_STOPPED = 4 }; /* a TRAIN was stopped by wall_time, after saving its checkpoint */
/* WEFT_JSON_WITH_REPORT: as WEFT_JSON, and documents of EXPLAIN have the printed report under "report". */
enum weft_format { WEFT_TEXT, WEFT_JSON, WEFT_JSON_WITH_REPORT };

typedef struct weft_session weft_session;
typedef struct weft_answer weft_answer;

/* An error. Texts are UTF-8, never NULL, and valid as long as the answer. */
typedef struct weft_error {
  int status; /* WEFT_USER: the statement; WEFT_WORLD: a file, a rank, memory; WEFT_INTERNAL: Weft itself */
  const char* message; /* one line, without the location */
  const char* hint;    /* one thing to do; empty: none */
  const char* report;  /* location, message, the line with carets and the hint, as printed by weft */
  const char* text;    /* what the location refers to: the executed text, or a definition it uses */
  int64_t line;        /* from 1; 0: the error has no location, and the next three are 0 too */
  int64_t column;      /* from 1, in characters */
  int64_t offset;      /* from 0, in bytes */
  int64_t length;      /* in bytes */
} weft_error;

/* Progress of a training. */
typedef struct weft_progress {
  const char* model;
  int64_t step, steps; /* completed so far, total; a total of 0: unknown */
  double loss;
  double rows_per_second; /* 0: not yet known */
  double seconds_left;    /* negative: not yet known */
} weft_progress;

/* Progress of a plan search. */
typedef struct weft_search_progress {
  const char* model;
  int64_t candidates;   /* plans tried so far */
  double best_seconds;  /* predicted step time of the best plan that fits; 0: none yet */
  double bound_seconds; /* no plan takes less; 0: not known */
  double seconds;       /* since the search began */
} weft_search_progress;

const char* weft_version(void); /* "0.2.0" */

int weft_session_open(weft_session** session);
void weft_session_close(weft_session* session); /* NULL: does nothing */

/* Executes statements separated by semicolons until one fails. Free `*answer` in any case: after a
 * failure it holds the answers of the earlier statements, and the error. It is NULL if an argument is
 * NULL or memory is exhausted; weft_last_error() of weft_comm.h then gives the reason. */
int weft_session_execute(weft_session* session, const char* text, int format, weft_answer** answer);

/* The statements' answers: with WEFT_JSON one document per statement, each ending in a newline. */
const char* weft_answer_text(const weft_answer* answer);
size_t weft_answer_size(const weft_answer* answer);             /* bytes, without the terminating null */
const weft_error* weft_answer_error(const weft_answer* answer); /* NULL: no error */
void weft_answer_free(weft_answer* answer);                     /* NULL: does nothing */

/* Passes on each statement's answer when it is ready, instead of all at the end. NULL turns this off. */
typedef void (*weft_on_answer)(const char* text, size_t size, void* data);
void weft_session_on_answer(weft_session* session, weft_on_answer function, void* data);

/* Called at most ten times per second; `progress` is valid during the call. NULL turns this off. */
typedef void (*weft_on_progress)(const weft_progress* progress, void* data);
void weft_session_on_progress(weft_session* session, weft_on_progress function, void* data);

/* The same for plan searches. */
typedef void (*weft_on_search)(const weft_search_progress* progress, void* data);
void weft_session_on_search(weft_session* session, weft_on_search function, void* data);

/* Callable from any thread, callback or signal handler. The current execution soon ends with the WEFT_USER
 * error "interrupted" or "interrupted after step 12". A plan search ends with the best plan so far, if it has one: EXPLAIN
 * then succeeds. Does nothing if nothing is being executed. */
void weft_session_interrupt(weft_session* session);

/* The tensors of a model that the session has trained or loaded: parameters, states, optimizer moments. */
typedef struct weft_weights weft_weights;
typedef struct weft_tensor {
  const char* name;     /* "w1"; "w1.first" is a moment of w1 */
  const char* dtype;    /* "f32", "f64", "bf16", "f16", "f8e4m3", "f8e5m2", "i32", "i64" or "bool" */
  const int64_t* shape; /* `dimensions` sizes; row-major */
  size_t dimensions;
  const void* data;
  size_t size; /* bytes */
} weft_tensor;

/* Copies the weights; `*weights` does not change with the session and outlives it. If the model is
 * unknown or not trained: WEFT_USER, and `*weights` is NULL. */
int weft_session_weights(weft_session* session, const char* model, weft_weights** weights);
int64_t weft_weights_step(const weft_weights* weights); /* steps completed */
size_t weft_weights_count(const weft_weights* weights);
/* A tensor, ordered by name, valid until weft_weights_free(). NULL: no such index. */
const weft_tensor* weft_weights_tensor(const weft_weights* weights, size_t index);
void weft_weights_free(weft_weights* weights); /* NULL: does nothing */

#ifdef __cplusplus
}
#endif
#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#endif
