// weft/runtime/measure/machine_profile.h -- rates of a machine's links, memory and cores, measured by ranks.
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

// The measurements, complete on rank 0.
struct MachineProfile {
  std::string machine;
  std::int32_t ranks = 1, hosts = 1;
  double memory_bytes = 0;  // per host
  std::int32_t cores = 1;   // per host
  std::vector<cost::Rate> rates;
  std::vector<cost::LinkTime> links;
  std::vector<std::int32_t> host_of = {};  // by rank; empty: a single host
};

struct ProfileEffort {
  std::vector<std::string> transports = {};            // empty: tcp, and shm within hosts
  bool quick = false;                                  // in a tenth of the time
  std::function<void(std::string_view)> on_note = {};  // called on rank 0, one line per measurement
};

// Collective over the job.
Result<MachineProfile> measure_machine(const std::shared_ptr<transport::Job>& job,
                                       const ProfileEffort& effort);

}  // namespace weft::measure
