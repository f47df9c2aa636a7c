// weft/formats/nccl_tests_log.h -- tables of measured collectives, as nccl-tests prints them.
//
//   #                                                      out-of-place                ...
//   #       size         count      type   redop    root     time   algbw   busbw  #wrong ...
//           1024           256     float     sum      -1    11.88    0.09    0.15       0 ...
//
// The columns depend on the test and its version: redop, root and the last column of each half
// (#wrong, formerly error) may be missing, and so may the in-place half. The header determines
// them; without a header the number of words does. A line that begins with an integer is a row and
// must be valid. All other lines that are not comments are output of other programs on the same
// terminal. Comments about ranks give their number, the hosts and the devices:
//
//   #  Rank  0 Group  0 Pid  97083 on      node1 device  0 [0x1b] NVIDIA H100 80GB HBM3
//
// Also reads {"algorithm": ..., "collective": ..., "ranks": ..., "rows": [{"bytes": ...,
// "out_of_place_us": ..., "in_place_us": ...}, ...]}.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/collective.h"

namespace weft::formats {

struct CollectiveRow {
  std::int64_t bytes = 0;
  double out_of_place_us = 0;  // 0: not measured
  double in_place_us = 0;

  friend bool operator==(const CollectiveRow&, const CollectiveRow&) = default;
};

struct CollectiveTable {
  std::string algorithm;                             // empty: unknown
  collective::Kind kind = collective::Kind::custom;  // custom: unknown
  std::int32_t ranks = 0;                            // 0: unknown
  std::vector<CollectiveRow> rows;                   // in ascending size
  std::int32_t hosts = 0;                            // 0: unknown
  std::string device = {};                           // "NVIDIA H100 80GB HBM3"; empty: unknown

  friend bool operator==(const CollectiveTable&, const CollectiveTable&) = default;
};

inline constexpr std::size_t kMostCollectiveRows = 4096;
inline constexpr std::int64_t kMostCollectiveBytes = std::int64_t{1} << 50;
inline constexpr std::int32_t kMostCollectiveRanks = 1 << 20;
inline constexpr double kMostMicroseconds = 1e12;

// Reads either form, as the first character tells. `path` is only for error messages, which name
// the line (log) or the row (JSON).
Result<CollectiveTable> parse_collective_table(std::string_view text, std::string_view path);

// The log that nccl-tests would have printed for these times, with floats. The name, kind and
// number of ranks are in comments that parse_collective_table() reads.
std::string print_nccl_tests_log(const CollectiveTable& table);

}  // namespace weft::formats
