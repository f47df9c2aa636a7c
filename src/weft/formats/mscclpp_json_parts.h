// weft/formats/mscclpp_json_parts.h -- what both layouts of an MSCCL++ plan have in common.
#pragma once
#include <string_view>

#include "weft/base/result.h"
#include "weft/collectives/one_sided/one_sided.h"
#include "weft/formats/json_node.h"

namespace weft::formats {

inline constexpr std::int32_t kMostPlanRanks = 1 << 16;
inline constexpr std::int32_t kMostPlanChunks = 1 << 24;  // of a buffer

// The fields beside `gpus`.
Result<collective::OneSided> read_plan_head(const JsonNode& top);

Result<collective::Buffer> read_buffer(const JsonNode& node, const char* key);  // "i", "o" or "s"

// `id` of the index-th of a list: it must be that index, or a runtime would read another entry.
Status expect_id(const JsonNode& node, std::size_t index);

// Sets the collective from the word and the chunks of the buffers.
Status settle_collective(const JsonNode& top, collective::OneSided& plan);

// The layout of 2024-04 to 2025-08: see mscclpp_json_v1.cpp.
Result<collective::OneSided> read_mscclpp_json_v1(const JsonNode& top);

}  // namespace weft::formats
