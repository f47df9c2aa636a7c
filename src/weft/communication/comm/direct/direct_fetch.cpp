// Fetches data of other ranks: copied from accessible memory, or read through the OS kernel.
#include <cstring>

#include <fmt/format.h>

#include "weft/communication/comm/direct/direct_operation.h"
#include "weft/device/cpu/non_temporal.h"

namespace weft::comm {

bool fetch(DirectOperation& operation, std::int32_t other, std::byte* target, const std::byte* data,
           std::size_t bytes, bool through_kernel, Progress& answer) {
  if (bytes == 0) return true;
  const DirectSide& side = *operation.side;
  if (!through_kernel) {
    if (operation.plan.non_temporal)
      device::cpu::copy_non_temporal(target, data, bytes);
    else
      std::memcpy(target, data, bytes);
    return true;
  }
  if (side.reach.read(other, data, {target, bytes})) return true;
  answer = operation.fail(
      side.poisoned() ? poison_error(side)
                      : environment_error(fmt::format("the memory of rank {} is no longer readable", other)));
  return false;
}

const std::byte* within_reach(DirectOperation& operation, std::int32_t other, const std::byte* data,
                              std::size_t bytes, Progress& answer) {
  const DirectSide& side = *operation.side;
  if (other == side.rank || operation.known(other).offer != Offer::memory) return data;
  std::vector<std::byte>& room = operation.stream->reading.fetched;
  const std::size_t each = bytes_to_fetch(side.ranks);
  if (room.empty()) room.resize(each * static_cast<std::size_t>(side.ranks));
  std::byte* const here = room.data() + static_cast<std::size_t>(other) * each;
  return fetch(operation, other, here, data, bytes, true, answer) ? here : nullptr;
}

}  // namespace weft::comm
