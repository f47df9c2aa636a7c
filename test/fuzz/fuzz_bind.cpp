// Any text is answered by a session: done, or an error of the user or the world; never ours, never
// a crash, never without end.

#include "promise.h"
#include "weft/app/session/session.h"

using weft::fuzz::promise;
using weft::session::ExitCode;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::session::Session session;
  // A plan of four million nodes, the limit as shipped, is legal and takes the sanitizers too long.
  promise(session.execute("SET plan_limit = 20000").exit_code == ExitCode::ok, "plan_limit can be set");
  // EXPLAIN ANALYZE runs whatever fits; what fits here runs in no time.
  promise(session.execute("SET memory_limit = '512 KiB'").exit_code == ExitCode::ok,
          "memory_limit can be set");
  // A long statement is stopped as Ctrl-C would, after a fixed number of looks.
  int looks = 0;
  session.interrupted = [&looks] { return ++looks > 100; };
  const auto reply = session.execute(std::string_view(reinterpret_cast<const char*>(data), size));
  promise(reply.exit_code != ExitCode::internal_error, "no input is our mistake", reply.complaint);
  promise((reply.exit_code == ExitCode::ok) == reply.complaint.empty(), "an error complains",
          reply.complaint);
  return 0;
}
