// weft/app/explain/rank_activity.h -- communication of the ranks of this machine, as in `weft top`.
//
//   rank  process  calls    bytes   in calls  waits  faults   calls/s       rate   busy
//      0     4711  88210  1.2 GiB     3.41 s      2       0      9120   130 MB/s    34%
//      1     4712  88210  1.2 GiB     3.38 s      0       0      9120   130 MB/s    33%
//
//   collective   calls    bytes  in calls  waits  faults
//   all_reduce  176400  2.4 GiB    6.78 s      2       0
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "weft/communication/comm/metrics.h"
#include "weft/communication/transport/doctor.h"

namespace weft::explain {

struct RankActivity {
  pid_t process = 0;
  std::int32_t rank = -1, ranks = 0;  // -1: unknown
  std::string state;                  // the process state, if it did not answer
  comm::Tallies tallies = {};
};

struct ActivitySnapshot {
  std::chrono::steady_clock::time_point taken;
  std::vector<RankActivity> ranks;
};

ActivitySnapshot snapshot_of(const std::vector<transport::RankReport>& patients,
                             std::chrono::steady_clock::time_point taken);

// Computes rates since `before` if it is given.
std::string print_text(const ActivitySnapshot& now, const std::optional<ActivitySnapshot>& before,
                       std::size_t width);
std::string print_json(const ActivitySnapshot& now,
                       const std::optional<ActivitySnapshot>& before);  // one line

}  // namespace weft::explain
