// weft/translate/imports/layer_runs.h -- expresses layers of several kinds with few REPEATs.
//
//   0 1 0 1 0 1 0      {times 3, kinds 0 1, first 0}, {times 1, kinds 0, first 6}
//   0 0 0 1 1          {times 3, kinds 0, first 0}, {times 2, kinds 1, first 3}
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::imports {

struct LayerRun {
  std::int64_t times = 0;
  std::vector<std::size_t> kinds = {};  // layer kinds of one repetition
  std::int64_t first = 0;               // number of the first layer
};

std::vector<LayerRun> layer_runs(const std::vector<std::size_t>& kinds);

}  // namespace weft::imports
