// weft/collectives/synthesis/index.h -- converts a node, edge or chunk number to a list index.
#pragma once
#include <cstddef>
#include <cstdint>

namespace weft::synthesis {

inline std::size_t at(std::int32_t number) { return static_cast<std::size_t>(number); }

}  // namespace weft::synthesis
