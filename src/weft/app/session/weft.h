/* weft/app/session/weft.h -- Weft for C and whatever calls C: statements in, answers out.
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
 * A session owns a catalog that starts with the shipped models and clusters, and the settings given so far. A
 * statement that fails changes nothing. docs/c_api.md is the guide; collectives are in weft_comm.h.
 *
 * Threads: a session is used by one thread at a time, except weft_session_interrupt(); sessions are
 * independent of each other. Callbacks come on the thread that executes. Nothing prints, exits or throws.
 */
#ifndef WEFT_H
#define WEFT_H
#include <stddef.h>
#include <stdint.h>

#ifdef __GNUC__
#pragma GCC visibility push(default) /* what libweft.so exports */
#endif
#ifdef __cplusplus
extern "C" {
#endif

#ifndef WEFT_STATUS /* also in weft_comm.h: either header stands alone */
#define WEFT_STATUS
enum weft_status { WEFT_OK = 0, WEFT_USER = 1, WEFT_WORLD = 2, WEFT_INTERNAL = 3 };
#endif
enum { WEFT_STOPPED = 4 }; /* of a session: wall_time ended a TRAIN, which has saved its checkpoint */
enum weft_format { WEFT_TEXT, WEFT_JSON };

typedef struct weft_session weft_session;
typedef struct weft_answer weft_answer;

/* What went wrong. Texts are UTF-8, never NULL, and live as long as the answer. */
typedef struct weft_error {
  int status; /* WEFT_USER: the statement; WEFT_WORLD: a file, a rank, memory; WEFT_INTERNAL: Weft itself */
  const char* message; /* one line, without the place */
  const char* hint;    /* one remedy; empty: none is known */
  const char* report; /* place, message, the line with carets and the hint, as the weft program prints them */
  const char* text;   /* where the place is: the text that was executed, or the definition that it uses */
  int64_t line;       /* from 1; 0: the error has no place, and the three below are 0 too */
  int64_t column;     /* from 1, in characters */
  int64_t offset;     /* from 0, in bytes */
  int64_t length;     /* in bytes */
} weft_error;

/* How far a training is. */
typedef struct weft_progress {
  const char* model;
  int64_t step, steps; /* done so far, in all; 0 in all: nobody knows */
  double loss;
  double rows_per_second; /* 0: not known yet */
  double seconds_left;    /* negative: not known yet */
} weft_progress;

const char* weft_version(void); /* "0.1.0" */

int weft_session_open(weft_session** session);
void weft_session_close(weft_session* session); /* NULL: nothing happens */

/* Runs statements, separated by semicolons, until one fails. `*answer` is to be freed, also when a statement
 * failed: it then has what the statements before it answered, and the error. It is NULL where an argument is
 * NULL or memory is short; weft_last_error() of weft_comm.h then says which. */
int weft_session_execute(weft_session* session, const char* text, int format, weft_answer** answer);

/* What the statements answered: with WEFT_JSON one document a statement, each ending in a newline. */
const char* weft_answer_text(const weft_answer* answer);
size_t weft_answer_size(const weft_answer* answer);             /* bytes, without the final zero */
const weft_error* weft_answer_error(const weft_answer* answer); /* NULL: all went well */
void weft_answer_free(weft_answer* answer);                     /* NULL: nothing happens */

/* Each statement's answer as soon as there is one, instead of all in the end; `function` NULL: no more. */
typedef void (*weft_on_answer)(const char* text, size_t size, void* data);
void weft_session_on_answer(weft_session* session, weft_on_answer function, void* data);

/* Ten times a second at most; `progress` lives for the call. `function` NULL: no more. */
typedef void (*weft_on_progress)(const weft_progress* progress, void* data);
void weft_session_on_progress(weft_session* session, weft_on_progress function, void* data);

/* From any thread, a callback or a signal handler: what is being executed soon ends with the WEFT_USER error
 * "interrupted", or "interrupted after step 12". Nothing happens where nothing is being executed. */
void weft_session_interrupt(weft_session* session);

#ifdef __cplusplus
}
#endif
#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#endif
