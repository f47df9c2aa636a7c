// Ranks as separate processes, for tests: forked, watched and always reaped.
#pragma once
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "weft/communication/transport/rendezvous.h"

namespace weft::transport {

class RankProcesses {
 public:
  // Returns 0 for success and 1 for failure, which expect() collects.
  using Part = std::function<int(std::int32_t rank)>;

  explicit RankProcesses(std::chrono::milliseconds limit = std::chrono::seconds(10))
      : deadline_(std::chrono::steady_clock::now() + limit) {}
  ~RankProcesses() {
    for (const pid_t process : processes_) {
      if (process <= 0) continue;
      ::kill(process, SIGKILL);
      ::waitpid(process, nullptr, 0);
    }
  }

  pid_t start(std::int32_t rank, const Part& part) {
    std::fflush(nullptr);
    const pid_t parent = ::getpid();
    const pid_t process = ::fork();
    if (process == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(3);
      int code = 2;
      try {
        code = part(rank);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "rank %d threw: %s\n", rank, error.what());
      }
      std::fflush(nullptr);
      ::_exit(code);
    }
    processes_.push_back(process);
    return process;
  }

  void start_all(std::int32_t ranks, const Part& part) {
    for (std::int32_t rank = 0; rank < ranks; ++rank) start(rank, part);
  }

  // The exit code of the i-th process; 128 + signal; -1 if it did not end in time.
  int wait(std::size_t i) {
    for (int status = 0;;) {
      const pid_t done = ::waitpid(processes_[i], &status, WNOHANG);
      if (done != 0) {
        processes_[i] = -1;
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      }
      if (std::chrono::steady_clock::now() > deadline_) return -1;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  std::vector<int> wait_all() {
    std::vector<int> codes;
    for (std::size_t i = 0; i < processes_.size(); ++i) codes.push_back(processes_[i] > 0 ? wait(i) : -2);
    return codes;
  }

  pid_t process(std::size_t i) const { return processes_[i]; }

 private:
  std::chrono::steady_clock::time_point deadline_;
  std::vector<pid_t> processes_;
};

// A rendezvous on this machine, under a name that no other test uses.
inline Rendezvous local_meeting(std::int32_t rank, std::int32_t ranks, const std::string& name,
                                std::chrono::milliseconds timeout = std::chrono::seconds(10)) {
  Rendezvous out;
  out.rank = rank;
  out.ranks = ranks;
  out.name = name + std::to_string(::getppid());
  out.secret = "a secret of this test alone";
  out.timeout = timeout;
  return out;
}

// Prints what went wrong and where, and returns the exit code.
inline int check(bool good, const char* what, std::int32_t rank, const std::string& seen = {}) {
  if (!good) std::fprintf(stderr, "rank %d: expected %s, got: %s\n", rank, what, seen.c_str());
  return good ? 0 : 1;
}

}  // namespace weft::transport
