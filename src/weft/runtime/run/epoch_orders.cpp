#include "weft/runtime/run/epoch_orders.h"

#include <numeric>
#include <utility>

#include "weft/base/random.h"

namespace weft::run {

EpochOrders::Order EpochOrders::of(std::int64_t epoch) const {
  const std::lock_guard lock(mutex_);
  for (const Drawn& drawn : last_)
    if (drawn.epoch == epoch) return drawn.order;
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows_));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  Random random(seed_, static_cast<std::uint64_t>(epoch));
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  last_[1] =
      std::exchange(last_[0], {epoch, std::make_shared<const std::vector<std::int64_t>>(std::move(order))});
  return last_[0].order;
}

}  // namespace weft::run
