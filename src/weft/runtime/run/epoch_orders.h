// weft/runtime/run/epoch_orders.h -- the shuffled order of rows in each epoch.
//
//   rank 0   epoch 3 . . . . | epoch 4 .           one rank is already in the next epoch
//   rank 1   epoch 3 . . |                         the other still reads the order of this one
//
// Ranks that are threads share a feed, so an order never changes once it is drawn. The last two are
// kept, and a reader of an older one holds a reference to it. Each order is drawn independently
// from the file's order, so epochs can be requested in any order.
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
  mutable std::array<Drawn, 2> last_;  // newest first
};

}  // namespace weft::run
