// weft/app/command/memory.h -- `weft memory`: recomputation, packing and tiling of tensors.
#pragma once
#include <cstdint>
#include <string>

#include "weft/app/session/session.h"

namespace weft::command {

struct MemoryRecompute {
  std::string file;
  std::string graph;        // empty: the only graph in the file
  std::int64_t budget = 0;  // in the file's unit
  session::Format format = session::Format::text;
};
session::Reply run(const MemoryRecompute& request);

struct MemoryPack {
  std::string file;
  std::string capacity;  // "1048576" or "1 MiB"; empty: minimize it
  std::int64_t alignment = 1;
  std::int64_t effort = 0;  // 0: the packer's default
  session::Format format = session::Format::text;
};
session::Reply run(const MemoryPack& request);

struct MemoryTile {
  std::string file;
  std::string schedule;  // a schedule file to estimate; empty: search for one
  session::Format format = session::Format::text;
};
session::Reply run(const MemoryTile& request);

}  // namespace weft::command
