// weft/app/explain/profile_cluster.h -- prints a measured machine as CREATE DEVICE and CREATE CLUSTER.
#pragma once
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/runtime/measure/machine_profile.h"

namespace weft::explain {

// Fails if `name` is not a valid name for a cluster.
Status check_cluster_name(std::string_view name);

// The script: tables as comments, a device, and one cluster per transport with the best link last.
Result<std::string> print_cluster(const measure::MachineProfile& profile, std::string_view name);

}  // namespace weft::explain
