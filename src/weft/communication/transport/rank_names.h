// weft/communication/transport/rank_names.h -- formats lists of ranks: "rank 1", "rank 1, rank 2
// and rank 5".
#pragma once
#include <chrono>
#include <cstdint>
#include <span>
#include <string>

namespace weft::transport {

// More than 8 are truncated: "rank 0, rank 1, ... (30 ranks)".
std::string name_ranks(std::span<const std::int32_t> ranks);

// "30 s", "250 ms"
std::string print_time(std::chrono::milliseconds time);

}  // namespace weft::transport
