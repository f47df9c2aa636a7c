// weft/app/explain/plot.h -- a plot of collective times or bandwidth by message size.
//
//     ms |            __ tree
//        |     ______/__ ring
//     us | ___/
//        +--------------------
//          128 B   4 KiB   1 MiB
//        [ring ][tree ][  ring ]      the fastest by size
//
// Times are on logarithmic axes; bus bandwidth is on a linear axis.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/collective.h"

namespace weft::explain {

struct PlotPoint {
  std::int64_t bytes = 0;
  double seconds = 0;
};

struct PlotCurve {
  std::string name;
  std::vector<PlotPoint> points = {};  // in ascending size; points without a positive time are skipped
  bool measured = false;               // measured: drawn as dots; otherwise as a line
  std::size_t color = 0;               // same for curves of one algorithm; see palette() in svg.h
};

struct PlotRange {
  std::int64_t min_bytes = 0, max_bytes = 0;
  std::string name;
  std::size_t color = 0;
};

enum class PlotMeasure : std::uint8_t { time, bus_bandwidth };

struct PlotOptions {
  std::string title = {};
  PlotMeasure measure = PlotMeasure::time;
  collective::Kind kind = collective::Kind::all_reduce;  // determines the bus bandwidth factor
  std::int32_t ranks = 1;
};

// Fails if no curve has a point.
Result<std::string> plot(std::span<const PlotCurve> curves, std::span<const PlotRange> winners,
                         const PlotOptions& options);

}  // namespace weft::explain
