// weft/collectives/chunks/priority.h -- priority among collectives in flight.
//
// Set in a rank's program (program/tasks/program.h), used by the communicator
// (communication/comm/communicator.h).
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weft::collective {

// Chunks of a higher-priority collective overtake those of lower-priority ones in flight.
enum class Priority : std::uint8_t { high, normal, low };
inline constexpr std::size_t kPriorities = 3;

constexpr std::string_view name(Priority priority) {
  constexpr std::array<std::string_view, kPriorities> kNames = {"high", "normal", "low"};
  return kNames[static_cast<std::size_t>(priority)];
}

}  // namespace weft::collective
