// weft/app/command/partition.h -- `weft partition`: where to cut a model into stages, from the field's files.
#pragma once
#include <cstdint>
#include <string>

#include "weft/app/session/session.h"

namespace weft::command {

struct Partition {
  std::string file;
  std::int32_t devices = 0;        // 0: as the file has it
  std::string memory;              // of a device, "16 GiB"; none: as the file has it
  std::int32_t micro_batches = 0;  // 0: as the file has it
  std::string topology;            // "25 Gb/s", or levels from the innermost: "4@10 GB/s, 2@1 GB/s"
  bool straight = false;           // no replicas
  session::Format format = session::Format::text;
};
session::Reply run(const Partition& request);

}  // namespace weft::command
