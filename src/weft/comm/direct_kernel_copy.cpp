// Whether one copy through the kernel is less work than two through slots: measured here, once.
//
//   all_to_all, n ranks    slots: (n-1) blocks in, (n-1) out     kernel: (n-1) blocks, each `kernel_copies`
//   all_gather, n ranks    slots:     1 block in,  (n-1) out     kernel: (n-1) blocks, each `kernel_copies`
//
// The kernel looks up and pins every page, which costs half a copy on one machine and more than two on
// another.
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <vector>

#include "weft/comm/direct_operation.h"

namespace weft::comm {
namespace {

constexpr std::size_t kSampleBytes = 1 << 20;
constexpr int kSamples = 3;  // the quickest counts: a rank may lose its core in the middle of one
constexpr std::size_t kLeastBlock = 64 << 10;  // below, a system call is too much of it
// Who is read from waits for its readers, which slots spare it.
constexpr double kWait = 1.1;

template <class Copy>
double quickest(Copy copy) {
  double best = std::numeric_limits<double>::infinity();
  for (int sample = 0; sample < kSamples; ++sample) {
    const auto begin = std::chrono::steady_clock::now();
    if (!copy()) return std::numeric_limits<double>::infinity();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

// Of this process's own memory, which the kernel copies as it does another's.
double measure_kernel_copies() {
  std::vector<std::byte> source(kSampleBytes, std::byte{1}), target(kSampleBytes);
  const double through_kernel = quickest([&] {
    const iovec into{target.data(), target.size()}, from{source.data(), source.size()};
    return process_vm_readv(getpid(), &into, 1, &from, 1, 0) == static_cast<ssize_t>(kSampleBytes);
  });
  const double plain = quickest([&] {
    std::memcpy(target.data(), source.data(), kSampleBytes);
    asm volatile("" ::"r"(target.data()) : "memory");  // or nobody would want the copy
    return true;
  });
  return through_kernel / plain;
}

}  // namespace

double DirectSide::kernel_copies() {
  if (kernel_copies_ == 0) kernel_copies_ = measure_kernel_copies();
  return kernel_copies_;
}

bool kernel_copy_is_less_work(DirectOperation& operation) {
  DirectSide& side = *operation.side;
  const Kind kind = operation.call.kind;
  // A root's copy into slots costs the others no time: they copy out meanwhile.
  if (side.one_process || side.ranks == 1 || (kind != Kind::all_to_all && kind != Kind::all_gather))
    return false;
  if (operation.blocks.largest() < kLeastBlock) return false;
  const double taken = side.ranks - 1;  // blocks
  const double put = kind == Kind::all_to_all ? taken : 1;
  return side.kernel_copies() * kWait * taken < put + taken;
}

}  // namespace weft::comm
