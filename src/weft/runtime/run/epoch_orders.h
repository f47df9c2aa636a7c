// weft/runtime/run/epoch_orders.h -- the order in which each epoch sees the rows.
//
//   rank 0   epoch 3 . . . . | epoch 4 .           one rank is in the next epoch already
//   rank 1   epoch 3 . . |                         the other still reads the order of this one
//
// Ranks that are threads share a feed, so an order never changes once it is drawn: the last two are kept, and who
// reads an older one has it until he is done. Every order is drawn from the file's own, so any can be had first.
//
// Thread-safe. Included by the files of run/ only.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace weft::run {

class EpochOrders {
 public:
  using Order = std::shared_ptr<const std::vector<std::int64_t>>;

  EpochOrders(std::int64_t rows, std::uint64_t seed) : rows_(rows), seed_(seed) {}

  Order of(std::int64_t epoch) const;

 private:
  struct Drawn {
    std::int64_t epoch = -1;
    Order order;
  };

  const std::int64_t rows_;
  const std::uint64_t seed_;
  mutable std::mutex mutex_;
  mutable std::array<Drawn, 2> last_;  // the newest first
};

}  // namespace weft::run
