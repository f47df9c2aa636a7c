// weft/app/command/partition.h -- `weft partition`: splits a model into pipeline stages.
#pragma once
#include <cstdint>
#include <string>

#include "weft/app/session/session.h"

namespace weft::command {

struct Partition {
  std::string file;
  std::int32_t devices = 0;        // 0: from the file
  std::string memory;              // per device, "16 GiB"; empty: from the file
  std::int32_t micro_batches = 0;  // 0: from the file
  std::string topology;            // "25 Gb/s", or levels, innermost first: "4@10 GB/s, 2@1 GB/s"
  bool straight = false;           // no data-parallel replicas of stages
  session::Format format = session::Format::text;
};
session::Reply run(const Partition& request);

}  // namespace weft::command
