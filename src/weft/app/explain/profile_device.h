// weft/app/explain/profile_device.h -- a measured accelerator as a script that creates a device.
#pragma once
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/runtime/measure/device_rates.h"

namespace weft::explain {

// The table of products as comments, then CREATE DEVICE with the best of each type.
Result<std::string> print_device(const measure::DeviceRates& rates, std::string_view model,
                                 std::string_view name);

}  // namespace weft::explain
