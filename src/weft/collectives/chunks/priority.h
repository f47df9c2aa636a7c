// weft/collectives/chunks/priority.h -- which collective goes first where several are under way.
//
// Set in a rank's program (program/tasks/program.h), heeded by the communicator (comm/communicator.h).
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weft::collective {

// A collective of higher priority overtakes those of lower priority that are under way, chunk by chunk.
enum class Priority : std::uint8_t { high, normal, low };
inline constexpr std::size_t kPriorities = 3;

constexpr std::string_view name(Priority priority) {
  constexpr std::array<std::string_view, kPriorities> kNames = {"high", "normal", "low"};
  return kNames[static_cast<std::size_t>(priority)];
}

}  // namespace weft::collective
