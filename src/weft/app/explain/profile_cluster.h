// weft/app/explain/profile_cluster.h -- a measured machine as a script that creates a device and a cluster.
#pragma once
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/runtime/measure/machine_profile.h"

namespace weft::explain {

// Whether a cluster can be called that.
Status check_cluster_name(std::string_view name);

// The script: tables as comments, then a device, and a cluster for each transport, the best link last.
Result<std::string> print_cluster(const measure::MachineProfile& profile, std::string_view name);

}  // namespace weft::explain
