/* Plans the distribution of a model over a cluster and prints it in one line.
 *
 *   cc -std=c99 plan.c $(pkg-config --cflags --libs weft) -o plan
 *   ./plan 'EXPLAIN TRAIN gpt2 ON dgx1 WITH (b = 64)'
 *
 * If the loader does not find the library: LD_LIBRARY_PATH=$(pkg-config --variable=libdir weft).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/weft.h>

/* Prints the string value of "key" in a JSON answer. A real program would use a JSON parser. */
static void print_field(const char* json, const char* key) {
  const char* at = strstr(json, key);
  if (at == NULL) return;
  at = strchr(at + strlen(key), '"');
  if (at == NULL) return;
  ++at;
  printf("%.*s\n", (int)strcspn(at, "\""), at);
}

int main(int argc, char** argv) {
  const char* statement = argc > 1 ? argv[1] : "EXPLAIN TRAIN digits_mlp ON dgx1 WITH (b = 4096)";
  weft_session* session = NULL;
  weft_answer* answer = NULL;
  const weft_error* error;
  int status = weft_session_open(&session);
  if (status != WEFT_OK) return status;

  status = weft_session_execute(session, statement, WEFT_JSON, &answer);
  error = weft_answer_error(answer);
  if (error != NULL) {
    fputs(error->report, stderr); /* "error 1:24: ...", the line, carets, a hint */
  } else {
    print_field(weft_answer_text(answer), "\"plan\":");
  }
  weft_answer_free(answer);
  weft_session_close(session);
  return status; /* the same exit codes as the weft program's */
}
