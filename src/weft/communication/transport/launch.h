// weft/communication/transport/launch.h -- starts the ranks of a job on this machine and sees them to their end.
//
//   launch({.ranks = 4, .command = {"./train", "--steps", "10"}})
//
//     rank 0 ─┐  RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT (as torchrun has them),
//     rank 1 ─┤  WEFT_PORT WEFT_JOB_SECRET, and for rank 0 a socket that listens there already: no port
//     rank 2 ─┤  can be taken by somebody else between its choice and its use
//     rank 3 ─┘
//
// When a rank fails, the others have `grace` to notice and say so themselves; then they are ended. Nothing is
// left behind: ranks and what they started in their process groups end with the launch, and ranks with the
// launcher, however it ends.
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
  std::vector<std::string> command;  // the program (looked for in PATH) and its arguments
  std::vector<std::pair<std::string, std::string>> environment = {};  // on top of this process's own
  // Called with each line that a rank writes, without its newline; an unfinished last line too. Null: ranks
  // write where this process does.
  std::function<void(std::int32_t rank, Stream stream, std::string_view line)> on_line = {};
  std::chrono::milliseconds grace{5'000};  // from the first failure to SIGTERM; a second more to SIGKILL
  std::chrono::milliseconds stop_grace{
      30'000};                           // from a SIGTERM that was passed on: ranks save what they have
  std::chrono::milliseconds timeout{0};  // of the whole run, then SIGTERM; 0: none
  bool forward_signals = false;          // SIGINT and SIGTERM of this process go to all ranks
};

struct RankEnd {
  pid_t process = 0;
  int exit_code = 0;     // when it ended by itself
  int signal = 0;        // else what ended it
  bool stopped = false;  // by the launch, after another rank's failure, the timeout or a signal

  bool ok() const { return exit_code == 0 && signal == 0; }
  int code() const { return signal != 0 ? 128 + signal : exit_code; }  // as a shell has it
};

struct LaunchEnd {
  std::vector<RankEnd> ranks;
  std::optional<std::int32_t> first_failure;  // by time; a rank that the launch ended does not count
  bool timed_out = false;
  bool asked_to_end = false;  // by a signal to this process

  int code() const;          // 0, or of the first failure
  std::string what() const;  // "rank 1 (pid 123) was killed by signal 9"; empty when all went well
};

// Waits for all ranks to end. Fails when the program cannot be started.
Result<LaunchEnd> launch(const LaunchOptions& options);

}  // namespace weft::transport
