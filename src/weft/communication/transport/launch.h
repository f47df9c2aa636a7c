// weft/communication/transport/launch.h -- starts the ranks of a job on this machine and supervises
// them.
//
//   launch({.ranks = 4, .command = {"./train", "--steps", "10"}})
//
//     rank 0 ─┐  RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT (as in torchrun),
//     rank 1 ─┤  WEFT_PORT WEFT_JOB_SECRET, and for rank 0 a socket that already listens there: no other
//     rank 2 ─┤  program can take the port between its choice and its use
//     rank 3 ─┘
//
// When a rank fails, the others have `grace` to notice and report it; then they are terminated.
// Nothing is left behind: ranks and the processes in their process groups end with the launch, and
// ranks end with the launcher, however it ends.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/result.h"

namespace weft::transport {

enum class Stream : bool { output, error };

struct LaunchOptions {
  std::int32_t ranks = 1;
  std::vector<std::string> command;  // program (searched in PATH) and arguments
  std::vector<std::pair<std::string, std::string>> environment = {};  // added to this process's environment
  // Called for each line that a rank writes, without its newline, including an unfinished last
  // line. Null: ranks inherit this process's output.
  std::function<void(std::int32_t rank, Stream stream, std::string_view line)> on_line = {};
  std::chrono::milliseconds grace{5'000};  // from the first failure to SIGTERM; SIGKILL one second later
  std::chrono::milliseconds stop_grace{30'000};  // after a forwarded SIGTERM: ranks save their state
  std::chrono::milliseconds timeout{0};          // of the whole run, then SIGTERM; 0: none
  bool forward_signals = false;                  // forward SIGINT and SIGTERM to all ranks
};

struct RankEnd {
  pid_t process = 0;
  int exit_code = 0;     // if it exited
  int signal = 0;        // otherwise the signal that killed it
  bool stopped = false;  // by the launch, after another rank's failure, the timeout or a signal

  bool ok() const { return exit_code == 0 && signal == 0; }
  int code() const { return signal != 0 ? 128 + signal : exit_code; }  // as in a shell
};

struct LaunchEnd {
  std::vector<RankEnd> ranks;
  std::optional<std::int32_t> first_failure;  // in time; excludes ranks stopped by the launch
  bool timed_out = false;
  bool asked_to_end = false;  // by a signal to this process

  int code() const;          // 0, or that of the first failure
  std::string what() const;  // "rank 1 (pid 123) was killed by signal 9"; empty on success
};

// Waits for all ranks to exit. Fails if the program cannot be started.
Result<LaunchEnd> launch(const LaunchOptions& options);

}  // namespace weft::transport
