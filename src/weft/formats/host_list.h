// weft/formats/host_list.h -- the machines of a job, as launchers and schedulers list them.
//
//   node1 slots=8           Open MPI's hostfile, a machine a line; # begins a comment
//   node1:8                 MPICH's
//   node[01-16,20],gpu7     Slurm's short form, as SLURM_JOB_NODELIST has it
//
// A machine that is named twice is one; its slots add up, as launchers have it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft::formats {

inline constexpr std::size_t kMostHosts = 1 << 14;

struct HostList {
  std::vector<std::string> hosts;  // in their order
  std::int64_t slots = 0;          // of each; 0: it does not say
};

// Whether every line of it could be of such a list: what files are not of another kind.
bool looks_like_host_list(std::string_view text);

// Fails, with the line, on what it is not, and where machines have different numbers of slots.
Result<HostList> read_host_list(std::string_view text);

}  // namespace weft::formats
