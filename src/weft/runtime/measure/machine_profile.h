// weft/runtime/measure/machine_profile.h -- what a machine's links, memory and cores do, measured by its ranks together.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/transport/job.h"
#include "weft/predict/cost/statistics.h"
#include "weft/runtime/measure/profile_links.h"
#include "weft/runtime/measure/profile_rates.h"

namespace weft::measure {

// What was measured, as rank 0 knows it in the end.
struct MachineProfile {
  std::string machine;
  std::int32_t ranks = 1, hosts = 1;
  double memory_bytes = 0;  // of a host
  std::int32_t cores = 1;   // of a host
  std::vector<cost::Rate> rates;
  std::vector<cost::LinkTime> links;
  std::vector<std::int32_t> host_of = {};  // of each rank; empty: all on one
};

struct ProfileEffort {
  std::vector<std::string> transports = {};            // none: shm among the ranks of a host, and tcp
  bool quick = false;                                  // a tenth of the time
  std::function<void(std::string_view)> on_note = {};  // rank 0 tells what is being measured, a line each
};

// One rank's part. Collective over the job.
Result<MachineProfile> measure_machine(const std::shared_ptr<transport::Job>& job,
                                       const ProfileEffort& effort);

}  // namespace weft::measure
