// weft/formats/astra_config.h -- ASTRA-sim's network (.yml) and system (.json) files.
//
//   topology: [ Ring, Switch ]          # dimensions, innermost first
//   npus_count: [ 8, 4 ]
//   bandwidth: [ 300.0, 50.0 ]          # GB/s, by which ASTRA-sim means 2^30 bytes per second
//   latency: [ 300.0, 1000.0 ]          # ns per link
//
// From a system file only the keys that affect the time are read; others are ignored.
#pragma once
#include <string_view>

#include "weft/base/result.h"
#include "weft/predict/sim/trace/trace_network.h"
#include "weft/predict/sim/trace/trace_system.h"

namespace weft::formats {

Result<sim::TraceNetwork> parse_astra_network(std::string_view yml);
Result<sim::TraceSystem> parse_astra_system(std::string_view json);

}  // namespace weft::formats
