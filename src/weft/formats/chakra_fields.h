// weft/formats/chakra_fields.h -- the field numbers of MLCommons Chakra's et_def.proto that a run
// needs.
//
// Only for the files of formats/chakra.
#pragma once
#include <cstdint>

#include "weft/predict/sim/trace/execution_trace.h"

namespace weft::formats::chakra {

// Fields of Node.
constexpr std::uint32_t kId = 1, kName = 2, kType = 3, kControl = 4, kData = 5, kDuration = 7,
                        kAttribute = 10;
// Fields of GlobalMetadata.
constexpr std::uint32_t kVersion = 1;

// Fields of AttributeProto: its name, and one value field per type.
constexpr std::uint32_t kAttributeName = 1, kDouble = 3, kFloat = 5, kInt32 = 7, kInt64 = 9, kUint32 = 11,
                        kUint64 = 13, kSint32 = 15, kSint64 = 17, kFixed32 = 19, kFixed64 = 21,
                        kSfixed32 = 23, kSfixed64 = 25, kBool = 27, kString = 29;

// NodeType and CollectiveCommType, by number.
using Kind = sim::TraceNode::Kind;
using Collective = sim::TraceNode::Collective;
constexpr Kind kKinds[] = {Kind::nothing, Kind::nothing, Kind::memory,  Kind::memory,
                           Kind::compute, Kind::send,    Kind::receive, Kind::collective};
constexpr Collective kCollectives[] = {
    Collective::all_reduce, Collective::other, Collective::all_gather, Collective::other,
    Collective::other,      Collective::other, Collective::all_to_all, Collective::reduce_scatter};

// Written for collectives without a counterpart: broadcast.
constexpr std::uint64_t kOtherNumber = 5;

// Weft's attribute for a duration finer than the format's microseconds; others ignore it.
constexpr char kNanoseconds[] = "duration_nanos";

}  // namespace weft::formats::chakra
