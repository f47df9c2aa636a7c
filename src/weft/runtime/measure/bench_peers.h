// weft/runtime/measure/bench_peers.h -- the libraries to measure and their settings.
//
//               transport shm           transport tcp
//   weft        private, allocated      private
//   Open MPI    cma, no cma, ucx        tcp
//   MPICH       ucx + posix             ucx over tcp
//   Gloo        TCP (its only one)      TCP
//
// Every peer gets the settings that make it fastest, also when ranks outnumber cores: yielding for
// Open MPI, no core binding, large socket buffers, and for Gloo the best of all its algorithms and
// socket modes.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/runtime/measure/bench_group.h"

namespace weft::measure {

// One library with one setting, the subject of a table row.
struct BenchContender {
  std::string peer;       // "weft", "openmpi"
  std::string setting;    // "private", "no cma"; for Gloo the fastest algorithm
  std::size_t group = 0;  // index of its group
  bool allocated = false;
};

struct BenchContenders {
  std::vector<BenchRecipe> groups;
  std::vector<BenchContender> contenders;
  std::vector<std::string> left_out;  // "mpich: mpirun.mpich is not installed (package mpich)"
};

enum class BenchBuffers : std::uint8_t { private_memory, allocated, both };

struct BenchSelection {
  std::string transport;  // shm or tcp
  std::vector<std::string> peers;
  BenchBuffers buffers = BenchBuffers::private_memory;
  std::string programs;  // folder of the weft-peer-* programs; empty: this program's folder
};

// Fails if a name is not that of a known peer.
Status check_peers(const std::vector<std::string>& peers);
BenchContenders select_contenders(const BenchSelection& who, std::int32_t ranks);

}  // namespace weft::measure
