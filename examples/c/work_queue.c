/* Rank 0 distributes tasks to the ranks that request them: tagged messages, received from any rank.
 *
 *   cc -std=c99 work_queue.c $(pkg-config --cflags --libs weft) -o work_queue
 *   weft launch -n 4 ./work_queue
 */
#include <stdint.h>
#include <stdio.h>

#include <weft/weft_comm.h>

enum { RESULT, WORK, TASKS = 100 };

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, weft_last_error());
  return 1;
}

/* A worker's first result is 0, which only requests a task. Task 0 means that there are none left. */
static int hand_out(weft_comm* comm, int64_t* total) {
  int64_t next = 1, result, none = 0;
  int workers = (int)weft_size(comm) - 1;
  weft_received from;
  while (workers > 0) {
    if (weft_receive_tagged(comm, &result, 1, WEFT_I64, WEFT_ANY, RESULT, 0, &from) != WEFT_OK)
      return fail("receive");
    *total += result;
    if (weft_send_tagged(comm, next <= TASKS ? &next : &none, 1, WEFT_I64, from.from, WORK, 0) != WEFT_OK)
      return fail("send");
    if (next <= TASKS)
      ++next;
    else
      --workers;
  }
  return 0;
}

static int work(weft_comm* comm) {
  int64_t task = 0, result = 0;
  do {
    if (weft_send_tagged(comm, &result, 1, WEFT_I64, 0, RESULT, 0) != WEFT_OK) return fail("send");
    if (weft_receive_tagged(comm, &task, 1, WEFT_I64, 0, WORK, 0, NULL) != WEFT_OK) return fail("receive");
    result = task * task;
  } while (task != 0);
  return 0;
}

int main(void) {
  weft_comm* comm = NULL;
  int64_t total = 0;
  int code;
  if (weft_connect(NULL, &comm) != WEFT_OK) return fail("connect");
  code = weft_rank(comm) == 0 ? hand_out(comm, &total) : work(comm);
  if (code == 0 && weft_rank(comm) == 0)
    printf("%d ranks, the sum of %d squares is %ld\n", (int)weft_size(comm), (int)TASKS, (long)total);
  weft_close(comm);
  return code;
}
