// weft/app/explain/profile_device.h -- prints a measured accelerator as CREATE DEVICE.
#pragma once
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/runtime/measure/device_rates.h"

namespace weft::explain {

// A table of matrix products as comments, then CREATE DEVICE with the best rate per type.
Result<std::string> print_device(const measure::DeviceRates& rates, std::string_view model,
                                 std::string_view name);

}  // namespace weft::explain
