// weft/app/explain/program_table.h -- a chunk program as a text table.
//
//   rank  block  step  op       source    target    to  from  channel  after
//      0      0     0  send     input[0]             1     2        0
//                   1  receive            input[1]                     1.4
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "weft/app/explain/lines.h"
#include "weft/collectives/chunks/program.h"

namespace weft::explain {

struct ProgramTableOptions {
  std::int32_t rank = -1;            // -1: all
  std::int64_t most_rows = 100'000;  // a last line states how many more there are
  std::size_t width = kUsualWidth;   // columns of the screen
};

std::string program_table(const collective::Program& program, const ProgramTableOptions& options = {});

// A few lines: name, collective, protocol, channels, threadblocks, steps, messages and chunks sent.
std::string program_summary(const collective::Program& program);

}  // namespace weft::explain
