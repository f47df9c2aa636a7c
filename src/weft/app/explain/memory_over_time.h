// weft/app/explain/memory_over_time.h -- a rank's memory over a step, and ways to lower its peak.
//
//   612 MiB |             AAAAA          columns are units in order; each letter is a kind of memory:
//           |        AAAAAAAAAAAG        P parameters, O optimizer, I inputs, A activations, G gradients,
//           | PPPPPPPPPPPPPPPPPPP        B buffers
//             forward    backward update
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/program/tasks/program.h"

namespace weft::explain {

// A setting that was tried to lower the peak.
struct TriedForMemory {
  std::string what;  // "recompute = 'selective'"
  double bytes = 0;
  std::string why_not;  // if it was not possible
};

struct MemoryExplanation {
  std::string headline;  // of the statement
  std::string plan;      // if there are several ranks
  std::int32_t rank = 0;
  const program::Program* program = nullptr;
  double bytes = 0;  // total memory of the rank, packed
  double limit = 0;  // per device; 0: unknown
  std::vector<TriedForMemory> tried;
  std::size_t width = 80;
};

std::string print_text(const MemoryExplanation& explanation);
std::string print_json(const MemoryExplanation& explanation);  // one line

}  // namespace weft::explain
