// weft/transport/tcp/cores.h -- ranks tell each other over sockets which cores they run on.
//
//   word of a message   bits 0      10     20      30     32
//                            core+1 | rank | core+1 | hops
//                            mine     another's       since it said so
//
// A rank receives from few others, so each passes on what it was told, and all hear of all. What came by fewer
// hops counts more, and everything is forgotten in time. What is heard goes to a ThreadPlacement.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/transport/thread_placement.h"

namespace weft::transport::tcp {

class Cores {
 public:
  using Time = ThreadPlacement::Time;

  // As those of ThreadPlacement.
  Cores(std::int32_t rank, std::int32_t ranks, std::int32_t neighbours, std::int32_t cores);

  // What a message says of cores, sent from core `here`, and what is learned from one; 0 says nothing.
  std::uint32_t tell(std::int32_t here);
  void hear(std::int32_t from, std::uint32_t word);

  // Forgets what is old. The placement answers by what is left.
  ThreadPlacement& look();

 private:
  static constexpr std::int32_t kForgotten = 4;

  std::int32_t rank_;
  ThreadPlacement placement_;
  std::vector<std::int32_t> hops_;  // of what is known of each rank
  std::size_t told_ = 0;            // the latest of them
  std::int32_t looks_ = 0;
};

}  // namespace weft::transport::tcp
