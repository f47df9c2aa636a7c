#include "large_stack.h"

#include <pthread.h>
#include <sys/resource.h>

#include <csignal>
#include <cstddef>

namespace weft {
namespace {

constexpr std::size_t kStackBytes = std::size_t{8} << 20;  // the usual default limit

struct StackedCall {
  const std::function<int()>& body;
  int result = 0;
};

void* run_stacked(void* call) {
  auto& stacked = *static_cast<StackedCall*>(call);
  stacked.result = stacked.body();
  return nullptr;
}

}  // namespace

int with_large_stack(const std::function<int()>& body) {
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
      limit.rlim_cur >= kStackBytes)
    return body();
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_setattr_default_np(&attributes);
  StackedCall call{body};
  pthread_t thread{};
  const bool started = pthread_create(&thread, &attributes, run_stacked, &call) == 0;
  pthread_attr_destroy(&attributes);
  if (!started) return body();
  // Signals must interrupt that thread's system calls, not this one's.
  sigset_t asked, before;
  sigemptyset(&asked);
  for (const int number : {SIGINT, SIGTERM, SIGWINCH}) sigaddset(&asked, number);
  pthread_sigmask(SIG_BLOCK, &asked, &before);
  pthread_join(thread, nullptr);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return call.result;
}

}  // namespace weft
