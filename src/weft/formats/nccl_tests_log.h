// weft/formats/nccl_tests_log.h -- tables of measured collectives, as nccl-tests prints them.
//
//   #                                                      out-of-place                ...
//   #       size         count      type   redop    root     time   algbw   busbw  #wrong ...
//           1024           256     float     sum      -1    11.88    0.09    0.15       0 ...
//
// Which columns a log has depends on the test and its age: redop, root and the last of each half (#wrong,
// earlier error) come and go, and so may the in-place half. The header says which; without one the number
// of words does. A line that begins with a whole number is a row and must be a right one; all others that
// are not comments are noise of other programs that wrote to the same terminal. Of the comments, those about
// ranks say how many there are, on how many hosts, and what they compute on:
//
//   #  Rank  0 Group  0 Pid  97083 on      node1 device  0 [0x1b] NVIDIA H100 80GB HBM3
//
// Read besides: {"algorithm": ..., "collective": ..., "ranks": ..., "rows": [{"bytes": ...,
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
  std::string algorithm;                             // empty: the log does not say
  collective::Kind kind = collective::Kind::custom;  // custom: it does not say
  std::int32_t ranks = 0;                            // 0: it does not say
  std::vector<CollectiveRow> rows;                   // sizes ascend
  std::int32_t hosts = 0;                            // that they are on; 0: it does not say
  std::string device = {};                           // "NVIDIA H100 80GB HBM3"; empty: it does not say

  friend bool operator==(const CollectiveTable&, const CollectiveTable&) = default;
};

inline constexpr std::size_t kMostCollectiveRows = 4096;
inline constexpr std::int64_t kMostCollectiveBytes = std::int64_t{1} << 50;
inline constexpr std::int32_t kMostCollectiveRanks = 1 << 20;
inline constexpr double kMostMicroseconds = 1e12;

// Either form; which one is told by the first character. `path` is only for the errors, which name the
// line (log) or the row (JSON).
Result<CollectiveTable> parse_collective_table(std::string_view text, std::string_view path);

// The log nccl-tests would have printed for these times, of floats. The name, the kind and the number of
// ranks stand in comments that parse_collective_table() reads.
std::string print_nccl_tests_log(const CollectiveTable& table);

}  // namespace weft::formats
