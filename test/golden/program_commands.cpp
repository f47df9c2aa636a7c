// Commands for rank programs and buffer packing.
#include <sstream>

#include <fmt/format.h>

#include "commands.h"
#include "weft/language/complaint.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"
#include "weft/program/memory/check.h"
#include "weft/program/memory/pack.h"
#include "weft/program/tasks/program.h"

namespace weft::golden {
std::string program_command(const Case& test) {
  auto graph = plan::read(test.input, ops::all());
  if (!graph.ok()) return language::complain(graph.error(), test.input);
  const int workers = static_cast<int>(test.number("workers", 1));
  const auto program =
      program::compile(std::make_shared<plan::Graph>(std::move(*graph)), {.workers = workers});
  return program.ok() ? program::print(*program) : fmt::format("error: {}\n", program.error().message);
}

std::string pack_command(const Case& test) {
  std::vector<memory::Buffer> buffers;
  std::istringstream lines(test.input);
  for (memory::Buffer buffer; lines >> buffer.born >> buffer.dies >> buffer.size;) buffers.push_back(buffer);
  memory::PackOptions options;
  options.capacity = test.number("capacity", memory::kUnlimited);
  options.alignment = test.number("alignment", 1);
  const auto packing = memory::pack(buffers, options);
  if (!packing.ok()) return fmt::format("error: {}\n", packing.error().message);
  if (const Status checked = memory::check(buffers, *packing, options); !checked.ok())
    return fmt::format("the checker rejects the packing: {}\n", checked.error().message);
  std::string text;
  for (std::size_t i = 0; i < buffers.size(); ++i)
    text += fmt::format("{} of {} at {}\n", i, buffers[i].size, packing->offsets[i]);
  return text + fmt::format("peak {}, at least {}\n", packing->peak,
                            memory::lower_bound(buffers, options.alignment));
}

}  // namespace weft::golden
