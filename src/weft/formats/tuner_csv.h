// weft/formats/tuner_csv.h -- NCCL's algorithm, protocol and number of channels by message size, as
// the CSV that NCCL's example tuner plugin reads (NCCL_TUNER_CONFIG_FILE).
//
//   allreduce,0,65536,tree,ll,2,1,8,-1,-1
//
// means: an allreduce of 0 to 65536 bytes on 1 node and 8 ranks runs as a tree, with LL, on 2
// channels.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/result.h"

namespace weft::formats {

struct TunerRow {
  std::string coll;                            // broadcast reduce allgather reducescatter allreduce
  std::int64_t min = 0, max = 0;               // bytes, inclusive
  std::string algo;                            // tree ring collnet_direct collnet_chain nvls nvls_tree pat
  std::string proto;                           // ll ll128 simple
  std::int32_t channels = -1;                  // -1: NCCL's choice
  std::int32_t nNodes = -1, nRanks = -1;       // -1: any
  std::int32_t numPipeOps = -1, regBuff = -1;  // -1: any

  friend bool operator==(const TunerRow&, const TunerRow&) = default;
};

// A comment with the column names, then one line per row. Fails on words that the plugin does not
// know, empty size ranges, and numbers below -1.
Result<std::string> write_tuner_csv(const std::vector<TunerRow>& rows);

}  // namespace weft::formats
