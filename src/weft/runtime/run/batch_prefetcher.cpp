#include "weft/runtime/run/batch_prefetcher.h"

#include <system_error>
#include <utility>

namespace weft::run {

BatchPrefetcher::BatchPrefetcher(exec::Rank& rank, std::function<void(std::int64_t step)> fill)
    : rank_(rank), fill_(std::move(fill)) {
  if (!rank_.make_prefetch_buffer()) return;
  try {
    reader_ = std::thread([this] { read_batches(); });
  } catch (const std::system_error&) {
    // Without a thread, batches are read one at a time.
  }
}

BatchPrefetcher::BatchPrefetcher(exec::Rank& rank, const Feed& feed)
    : BatchPrefetcher(rank, [&rank, &feed](std::int64_t step) { feed.fill(rank, step); }) {}

void BatchPrefetcher::bring(std::int64_t step) {
  if (!reader_.joinable()) return fill_(step);
  std::unique_lock lock(mutex_);
  if (!batch_ || batch_->step != step) begin(lock, step);
  changed_.wait(lock, [&] { return batch_->is_read; });
  const Batch read = *std::exchange(batch_, std::nullopt);
  if (read.thrown) std::rethrow_exception(read.thrown);
  if (!read.is_sent) {
    // The step then sends the inputs itself, and reports a device failure in more detail.
    lock.unlock();
    stop();
    return fill_(step);
  }
  rank_.take_prefetched();
  begin(lock, step + 1);
}

// Replaces a batch that was read but not used: there is space for only one.
void BatchPrefetcher::begin(std::unique_lock<std::mutex>& lock, std::int64_t step) {
  changed_.wait(lock, [&] { return !batch_ || batch_->is_read; });
  batch_.emplace(Batch{.step = step});
  changed_.notify_all();
}

void BatchPrefetcher::read_batches() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stops_ || (batch_ && !batch_->is_read); });
    if (stops_) return;
    Batch batch = *batch_;
    lock.unlock();
    try {
      fill_(batch.step);
      batch.is_sent = rank_.send_prefetched().ok();
    } catch (...) {
      batch.thrown = std::current_exception();
    }
    batch.is_read = true;
    lock.lock();
    batch_ = std::move(batch);
    changed_.notify_all();
  }
}

void BatchPrefetcher::stop() {
  if (!reader_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  reader_.join();
}

}  // namespace weft::run
