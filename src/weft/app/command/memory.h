// weft/app/command/memory.h -- `weft memory`: what is kept, what is computed again, and where it lies.
#pragma once
#include <cstdint>
#include <string>

#include "weft/app/session/session.h"

namespace weft::command {

struct MemoryRecompute {
  std::string file;
  std::string graph;        // its name; none: the only one of the file
  std::int64_t budget = 0;  // in the file's unit
  session::Format format = session::Format::text;
};
session::Reply run(const MemoryRecompute& request);

struct MemoryPack {
  std::string file;
  std::string capacity;  // "1048576" or "1 MiB"; none: as low as can be
  std::int64_t alignment = 1;
  std::int64_t effort = 0;  // 0: the packer's own
  session::Format format = session::Format::text;
};
session::Reply run(const MemoryPack& request);

struct MemoryTile {
  std::string file;
  std::string schedule;  // a file that is priced; none: one is found
  session::Format format = session::Format::text;
};
session::Reply run(const MemoryTile& request);

}  // namespace weft::command
