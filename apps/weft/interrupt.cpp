#include "interrupt.h"

#include <unistd.h>
#include <csignal>

#include <atomic>

namespace weft::interrupt {
namespace {

constexpr int kExitCode = 128 + SIGINT;  // as shells report it

std::atomic<bool> flag = false, stays = false, off = false, told = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may touch nothing else");

void on_signal(int) {
  if (flag.exchange(true) && !stays) _exit(kExitCode);
}

void on_terminate(int) {
  if (off) {
    told = true;
    return;
  }
  signal(SIGTERM, SIG_DFL);
  raise(SIGTERM);  // delivered when this handler returns
}

}  // namespace

void install() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  action.sa_handler = on_terminate;
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
}

void defer_termination(bool on) { off = on; }

bool terminated() { return told; }

void stay() { stays = true; }

bool requested() { return flag; }

int exit_code(int code) { return flag ? kExitCode : code; }

void clear() { flag = false; }

}  // namespace weft::interrupt
