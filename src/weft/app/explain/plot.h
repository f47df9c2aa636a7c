// weft/app/explain/plot.h -- times of collectives against the size of the message, as a drawing.
//
//     ms |            __ tree
//        |     ______/__ ring
//     us | ___/
//        +--------------------
//          128 B   4 KiB   1 MiB
//        [ring ][tree ][  ring ]      who wins where
//
// Both axes are logarithmic for times; bus bandwidth rises linearly.
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
  std::vector<PlotPoint> points = {};  // sizes ascend; points without a positive time are left out
  bool measured = false;               // drawn as dots, a model as a line
  std::size_t color = 0;               // curves of one algorithm share it; see palette() in svg.h
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
  collective::Kind kind = collective::Kind::all_reduce;  // bus bandwidth depends on it
  std::int32_t ranks = 1;
};

// Fails when no curve has a point.
Result<std::string> plot(std::span<const PlotCurve> curves, std::span<const PlotRange> winners,
                         const PlotOptions& options);

}  // namespace weft::explain
