// weft/runtime/measure/bench_peers.h -- who is measured, and with which settings.
//
//               transport shm           transport tcp
//   weft        private, allocated      private
//   Open MPI    cma, no cma, ucx        tcp
//   MPICH       ucx + posix             ucx over tcp
//   Gloo        TCP, it has no other    TCP
//
// Every peer is given what makes it fastest when ranks outnumber cores too: yielding for Open MPI, no binding
// to cores, large socket buffers, and for Gloo the best of all its algorithms and ways to use sockets.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/runtime/measure/bench_group.h"

namespace weft::measure {

// One library with one setting: what a row of the table is about.
struct BenchContender {
  std::string peer;       // "weft", "openmpi"
  std::string setting;    // "private", "no cma"; Gloo's is the algorithm that won
  std::size_t group = 0;  // which of the groups it runs in
  bool allocated = false;
};

struct BenchLineUp {
  std::vector<BenchRecipe> groups;
  std::vector<BenchContender> contenders;
  std::vector<std::string> left_out;  // "mpich: mpirun.mpich is not installed (package mpich)"
};

enum class BenchBuffers : std::uint8_t { private_memory, allocated, both };

struct BenchWho {
  std::string transport;  // shm or tcp
  std::vector<std::string> peers;
  BenchBuffers buffers = BenchBuffers::private_memory;
  std::string programs;  // the folder with weft-peer-*; empty: where this program is
};

// The peers that there are; empty when the names are right.
Status check_peers(const std::vector<std::string>& peers);
BenchLineUp line_up(const BenchWho& who, std::int32_t ranks);

}  // namespace weft::measure
