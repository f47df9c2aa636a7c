// weft/runtime/run/batch_prefetcher.h -- prefetches the next step's batch to the device during a step.
//
//   reader      [batch 0][batch 1].......[batch 2].......     reads into page-locked memory, copies
//                                                             to the device
//   bring(i)    .........[0].............[1].............[2]  waits for batch i, then starts
//                                                             reading batch i + 1
//   rank        ............[step 0].....[step 1].....
//
// If the device's memory is host-accessible there is no reader: batches are written directly to
// where the step reads them. The batches are the same either way. An exception while reading is
// rethrown by bring() for that step, and dropped if the batch is never requested.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "weft/base/result.h"
#include "weft/runtime/exec/rank.h"
#include "weft/runtime/run/feed.h"

namespace weft::run {

class BatchPrefetcher {
 public:
  // `fill` writes a step's batch to the rank's inputs, on another thread. Nothing else may write to
  // them meanwhile.
  BatchPrefetcher(exec::Rank& rank, std::function<void(std::int64_t step)> fill);
  BatchPrefetcher(exec::Rank& rank, const Feed& feed);
  ~BatchPrefetcher() { stop(); }
  BatchPrefetcher(const BatchPrefetcher&) = delete;
  BatchPrefetcher& operator=(const BatchPrefetcher&) = delete;

  // Call between steps: makes the rank's next step use the batch of `step`. Consecutive steps are
  // prefetched; any other batch is read on request.
  void bring(std::int64_t step);
  // Stops the reader; afterwards the rank's inputs may be used again.
  void stop();

 private:
  struct Batch {
    std::int64_t step = 0;
    bool is_read = false, is_sent = false;
    std::exception_ptr thrown = {};
  };

  void begin(std::unique_lock<std::mutex>& lock, std::int64_t step);
  void read_batches();

  exec::Rank& rank_;
  const std::function<void(std::int64_t step)> fill_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Batch> batch_;  // requested, possibly already read
  bool stops_ = false;
  std::thread reader_;  // not running: the calling thread reads
};

}  // namespace weft::run
