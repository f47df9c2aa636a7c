// weft/communication/comm/metrics_file.h -- metrics of a rank in a file for the textfile collector
// of Prometheus' node exporter.
//
//   WEFT_METRICS=/run/weft/job7    /run/weft/job7/weft_rank_3.prom, readable only by this user (0600)
//
// Written atomically every few seconds if something changed, and at exit. The directory is created
// if missing. Use one per job: ranks of two jobs would write the same file names. Write errors are
// ignored: no job fails because of its metrics.
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

  // Null if WEFT_METRICS is not set. `print` runs on a separate thread until this is destroyed.
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

// Writes `text` to `path`, readable only by its owner. A link at `path` is replaced, not followed.
Status write_private_file(const std::string& path, std::string_view text);

}  // namespace weft::comm
