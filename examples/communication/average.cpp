// Averages a number over all ranks, and continues with the others if a rank fails.
//
//   c++ -std=c++20 ... average.cpp        (see docs/communication.md)
//   weft launch -n 4 ./average

#include <cstdio>
#include <memory>
#include <vector>

#include "weft/communication/comm/communicator.h"

using weft::comm::ElementType;
using weft::comm::ReduceOp;

int main() {
  auto connected = weft::comm::connect();
  if (!connected.ok()) {
    std::fprintf(stderr, "%s\n", connected.error().message.c_str());
    return 1;
  }
  auto group = std::move(connected).value();
  std::vector<float> gradient(1'000'000, static_cast<float>(group->rank()));

  weft::Status status =
      group->all_reduce(gradient.data(), gradient.data(), 1'000'000, ElementType::f32, ReduceOp::avg);
  if (!status.ok()) {
    std::fprintf(stderr, "rank %d: %s\n", group->rank(), status.error().message.c_str());
    auto survivors = group->shrink();
    if (!survivors.ok()) return 1;
    group = std::move(survivors).value();
    status = group->barrier();
  }
  if (group->rank() == 0 && status.ok()) std::printf("%d ranks, average %g\n", group->size(), gradient[0]);
  return status.ok() ? 0 : 1;
}
