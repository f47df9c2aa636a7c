// weft/formats/host_list.h -- the machines of a job, as launchers and schedulers list them.
//
//   node1 slots=8           Open MPI's hostfile, one machine per line; # begins a comment
//   node1:8                 MPICH's
//   node[01-16,20],gpu7     Slurm's compressed form, as in SLURM_JOB_NODELIST
//
// A machine that is listed twice counts once with the sum of its slots, as for launchers.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft::formats {

inline constexpr std::size_t kMostHosts = 1 << 14;

struct HostList {
  std::vector<std::string> hosts;  // in file order
  std::int64_t slots = 0;          // per host; 0: not given
};

// Whether every line could belong to a host list. Used for files that match no other format.
bool looks_like_host_list(std::string_view text);

// Fails on invalid lines, naming the line, and if machines have different numbers of slots.
Result<HostList> read_host_list(std::string_view text);

}  // namespace weft::formats
