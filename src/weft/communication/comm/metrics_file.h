// weft/communication/comm/metrics_file.h -- a rank's metrics in a file that Prometheus' node exporter collects.
//
//   WEFT_METRICS=/run/weft/job7    /run/weft/job7/weft_rank_3.prom, of this user alone (0600)
//
// Written every few seconds where something has changed, and at the end; always whole. The directory is made if
// there is none, one for each job: ranks of two jobs would write the same names. What cannot be written is left:
// no job fails of its metrics.
#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "weft/base/result.h"

namespace weft::comm {

class MetricsFile {
 public:
  static constexpr std::chrono::seconds kEvery{5};

  // None where WEFT_METRICS is not set. `print` is called on a thread of its own, until this is gone.
  static std::unique_ptr<MetricsFile> from_environment(std::int32_t rank, std::function<std::string()> print);

  MetricsFile(std::string path, std::function<std::string()> print, std::chrono::milliseconds every);
  ~MetricsFile();

 private:
  void run(std::chrono::milliseconds every);

  const std::string path_;
  const std::function<std::string()> print_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

// Makes `path` a file of this text that only its owner can read. A link in its place is replaced, not followed.
Status write_private_file(const std::string& path, std::string_view text);

}  // namespace weft::comm
