#include "interrupt.h"

#include <unistd.h>
#include <csignal>

#include <atomic>

namespace weft::interrupt {
namespace {

constexpr int kExitCode = 128 + SIGINT;  // as shells report it

std::atomic<bool> flag = false, stays = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may touch nothing else");

void on_signal(int) {
  if (flag.exchange(true) && !stays) _exit(kExitCode);
}

}  // namespace

void install() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

void stay() { stays = true; }

bool requested() { return flag; }

void clear() { flag = false; }

}  // namespace weft::interrupt
