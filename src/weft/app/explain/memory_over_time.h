// weft/app/explain/memory_over_time.h -- what a rank's memory holds over a step, drawn, and what would lower its peak.
//
//   612 MiB |             AAAAA          columns are units in their order, a letter a kind, as high as it is full:
//           |        AAAAAAAAAAAG        P parameters, O optimizer, I inputs, A activations, G gradients, B buffers
//           | PPPPPPPPPPPPPPPPPPP
//             forward    backward update
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/program/tasks/program.h"

namespace weft::explain {

// Something that was tried to lower the peak.
struct TriedForMemory {
  std::string what;  // "recompute = 'selective'"
  double bytes = 0;
  std::string why_not;  // where it could not be done
};

struct MemoryExplanation {
  std::string headline;  // of the statement
  std::string plan;      // of several ranks
  std::int32_t rank = 0;
  const program::Program* program = nullptr;
  double bytes = 0;  // all that the rank takes, packed
  double limit = 0;  // of a device; 0: none is known
  std::vector<TriedForMemory> tried;
  std::size_t width = 80;
};

std::string print_text(const MemoryExplanation& explanation);
std::string print_json(const MemoryExplanation& explanation);  // one line

}  // namespace weft::explain
