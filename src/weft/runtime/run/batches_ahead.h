// weft/runtime/run/batches_ahead.h -- the batch of the next step, read and brought to the device while this one runs.
//
//   reader      [batch 0][batch 1].......[batch 2].......     reads into page-locked memory, copies to the device
//   bring(i)    .........[0].............[1].............[2]  waits for batch i, and has the reader begin i + 1
//   rank        ............[step 0].....[step 1].....
//
// Where the host reaches the device's memory there is no reader: a batch is written where it is read, which no copy
// could make faster. The batches are the same either way, and what reading one throws is thrown by bring() of its
// step: one that was read and not asked for is nobody's trouble.
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

class BatchesAhead {
 public:
  // `fill` writes the batch of a step into the rank's inputs, by another thread than this one. Nobody else writes
  // there meanwhile.
  BatchesAhead(exec::Rank& rank, std::function<void(std::int64_t step)> fill);
  BatchesAhead(exec::Rank& rank, const Feed& feed);
  ~BatchesAhead() { stop(); }
  BatchesAhead(const BatchesAhead&) = delete;
  BatchesAhead& operator=(const BatchesAhead&) = delete;

  // Between steps: the rank's next one takes the batch of `step`. Steps are expected one after the other; any other
  // is read when it is asked for.
  void bring(std::int64_t step);
  // When it returns nobody reads any more, and the rank's inputs are the caller's.
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
  std::optional<Batch> batch_;  // asked for, and perhaps read
  bool stops_ = false;
  std::thread reader_;  // none: the caller reads
};

}  // namespace weft::run
