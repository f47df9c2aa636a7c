// weft/formats/mscclpp_json_parts.h -- shared parts of both layouts of an MSCCL++ plan.
#pragma once
#include <string_view>

#include "weft/base/result.h"
#include "weft/collectives/one_sided/one_sided.h"
#include "weft/formats/json_node.h"

namespace weft::formats {

inline constexpr std::int32_t kMostPlanRanks = 1 << 16;
inline constexpr std::int32_t kMostPlanChunks = 1 << 24;  // per buffer

// Reads the fields other than `gpus`.
Result<collective::OneSided> read_plan_head(const JsonNode& top);

Result<collective::Buffer> read_buffer(const JsonNode& node, const char* key);  // "i", "o" or "s"

// Checks that `id` equals the index in its list; otherwise a runtime would read another entry.
Status expect_id(const JsonNode& node, std::size_t index);

// Sets the collective from its name and the buffers' chunks.
Status settle_collective(const JsonNode& top, collective::OneSided& plan);

// The layout of 2024-04 to 2025-08: see mscclpp_json_v1.cpp.
Result<collective::OneSided> read_mscclpp_json_v1(const JsonNode& top);

}  // namespace weft::formats
