#include "weft/runtime/exec/rank_bytes.h"

#include <string>
#include <variant>

#include <fmt/format.h>

#include "weft/base/units.h"

namespace weft::exec {
namespace {

// The reference implementation stores every element of operands and results as a double.
std::int64_t definition_bytes(const program::Unit& unit) {
  const auto* const call = std::get_if<program::OperatorCall>(&unit.kernel);
  if (call == nullptr) return 0;
  std::int64_t elements = 0;
  for (const program::Place& place : call->operands) elements += place.elements();
  for (const program::Place& place : call->results) elements += place.elements();
  return elements * static_cast<std::int64_t>(sizeof(double));
}

}  // namespace

void WorkerBytes::see(const program::Unit& unit, const device::Kernel& kernel) {
  scratch = std::max(scratch, kernel.scratch_bytes());
  if (kernel.is_reference()) definition = std::max(definition, definition_bytes(unit));
}

Error too_large(const program::Program& program, std::int64_t bytes, std::int64_t limit, std::int64_t held) {
  const auto print = [](std::int64_t count) { return print_bytes(static_cast<double>(count)); };
  const std::string beside =
      held > 0 ? fmt::format(", and {} are used by earlier weights", print(held)) : std::string();
  return environment_error(
      fmt::format("{} needs {} of memory, {} persistent and {} per step{}; the limit is {}",
                  program.graph->name, print(bytes), print(program.persistent_bytes),
                  print(bytes - program.persistent_bytes), beside, print(limit)),
      "use a smaller batch, or raise memory_limit");
}

Result<std::int64_t> bytes_beside(const program::Program& program, device::Device& device, int workers) {
  WEFT_TRY_STATUS(device.prepare(program));
  WorkerBytes needed;
  alignas(64) static std::byte nowhere[64];  // kernels need an address, but none of these runs
  for (const program::Unit& unit : program.units) {
    if (std::holds_alternative<program::Exchange>(unit.kernel)) continue;
    WEFT_TRY(kernel, device.make_kernel(program, unit, device::Address(nowhere)));
    needed.see(unit, *kernel);
  }
  return needed.of(workers);
}

}  // namespace weft::exec
