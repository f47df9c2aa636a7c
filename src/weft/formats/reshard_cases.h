// weft/formats/reshard_cases.h -- resharding between two meshes, as a list of cases.
//
//   [{"name": "case6", "src_mesh": [2, 4], "dst_mesh": [3, 4],            hosts, devices per host
//     "shape": [3072, 1024, 170], "dtype_bytes": 4,
//     "src_spec": [[0], [], []], "dst_spec": [[0], [], []]}, ...]         the mesh axes that slice each dim
//
// The two meshes share no host. Other keys are ignored.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/reshard/holdings.h"

namespace weft::formats {

// One side of a case.
struct ReshardSide {
  std::int32_t hosts = 1, devices = 1;  // devices per host
  reshard::Slicing slicing = {};

  std::int32_t ranks() const { return hosts * devices; }
};

struct ReshardCase {
  std::string name = {};
  std::vector<std::int64_t> sizes = {};
  std::int32_t element_bytes = 1;
  ReshardSide source = {}, destination = {};
};

// Errors begin with `path` and name the case and the value. Rejects meshes that are too large, axes
// that are not of the mesh or used twice, and dims that their axes do not divide.
Result<std::vector<ReshardCase>> read_reshard_cases(std::string_view text, std::string_view path);

// Devices are numbered first in the source, then in the destination.
Result<reshard::Reshard> reshard_of(const ReshardCase& one);

}  // namespace weft::formats
