// A session handles any text: it succeeds, or reports an error of the user or the environment. It
// never reports an internal error, crashes or hangs.

#include "promise.h"
#include "weft/app/session/session.h"

using weft::fuzz::promise;
using weft::session::ExitCode;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::session::Session session;
  // The default limit of four million nodes would take too long under the sanitizers.
  promise(session.execute("SET plan_limit = 20000").exit_code == ExitCode::ok, "plan_limit can be set");
  // EXPLAIN ANALYZE runs any plan that fits; a plan that fits in this limit runs quickly.
  promise(session.execute("SET memory_limit = '512 KiB'").exit_code == ExitCode::ok,
          "memory_limit can be set");
  // Interrupts a long statement as Ctrl-C does, after a fixed number of checks.
  int looks = 0;
  session.interrupted = [&looks] { return ++looks > 100; };
  const auto reply = session.execute(std::string_view(reinterpret_cast<const char*>(data), size));
  promise(reply.exit_code != ExitCode::internal_error, "no input causes an internal error", reply.complaint);
  promise((reply.exit_code == ExitCode::ok) == reply.complaint.empty(), "an error has a message",
          reply.complaint);
  return 0;
}
