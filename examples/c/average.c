/* Averages a number over all ranks.
 *
 *   cc -std=c99 average.c $(pkg-config --cflags --libs weft) -o average
 *   weft launch -n 4 ./average
 *
 * mpirun, srun and torchrun can start it, too.
 */
#include <stdint.h>
#include <stdio.h>

#include <weft/weft_comm.h>

enum { COUNT = 1000000 };

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, weft_last_error());
  return 1;
}

int main(void) {
  weft_comm* comm = NULL;
  void* memory = NULL;
  float* gradient;
  int64_t i;
  int code = 0;
  if (weft_connect(NULL, &comm) != WEFT_OK) return fail("connect");

  /* Memory that all ranks of the machine share: they reduce in place, without copies. */
  if (weft_allocate(comm, COUNT * sizeof(float), &memory) != WEFT_OK) return fail("allocate");
  gradient = memory;
  for (i = 0; i < COUNT; ++i) gradient[i] = (float)weft_rank(comm);

  if (weft_all_reduce(comm, gradient, gradient, COUNT, WEFT_F32, WEFT_AVG) != WEFT_OK)
    code = fail("all_reduce");
  if (code == 0 && weft_rank(comm) == 0)
    printf("%d ranks, average %g\n", (int)weft_size(comm), gradient[COUNT - 1]);
  weft_free(comm, memory);
  weft_close(comm);
  return code;
}
