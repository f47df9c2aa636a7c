// weft/collectives/synthesis/index.h -- a node, edge or chunk as the place it has in a list.
#pragma once
#include <cstddef>
#include <cstdint>

namespace weft::synthesis {

inline std::size_t at(std::int32_t number) { return static_cast<std::size_t>(number); }

}  // namespace weft::synthesis
