// weft/formats/msccl_keywords.h -- the keywords of MSCCL XML and their counterparts in Weft.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "weft/collectives/chunks/program.h"

namespace weft::formats {

// Indexed by collective::Op.
inline constexpr std::array<std::string_view, collective::kOps> kStepTypes = {"nop", "cpy", "re",  "s",   "r",
                                                                              "rcs", "rrc", "rrs", "rrcs"};

inline constexpr std::string_view kBufferLetters = "ios";  // indexed by collective::Buffer

// Indexed by collective::Protocol; spelled as in the file.
inline constexpr std::array<collective::Protocol, 3> kXmlProtocols = {
    collective::Protocol::simple, collective::Protocol::ll, collective::Protocol::ll128};

// Empty: the dialect's loaders do not have the collective.
struct CollectiveNames {
  collective::Kind kind;
  std::string_view msccl, azure;
};
inline constexpr std::array<CollectiveNames, 10> kCollectiveWords = {{
    {collective::Kind::all_reduce, "allreduce", "allreduce"},
    {collective::Kind::reduce_scatter, "reduce_scatter", "reducescatter"},
    {collective::Kind::all_gather, "allgather", "allgather"},
    {collective::Kind::all_to_all, "alltoall", "alltoall"},
    {collective::Kind::broadcast, "broadcast", "broadcast"},
    {collective::Kind::reduce, "reduce", "reduce"},
    {collective::Kind::gather, "", "gather"},
    {collective::Kind::scatter, "", "scatter"},
    {collective::Kind::send, "", "send"},
    {collective::Kind::custom, "custom", ""},
}};

inline constexpr std::string_view word(collective::Kind kind, bool azure) {
  for (const CollectiveNames& words : kCollectiveWords)
    if (words.kind == kind) return azure ? words.azure : words.msccl;
  return {};
}

// The value of nchunksperloop: the chunks of the message as the runtimes measure it. For a gather
// or scatter that is a block. A custom collective has no blocks, and its `chunks` is nchunksperloop
// itself.
inline std::int64_t chunks_per_loop(const collective::Collective& collective) {
  using enum collective::Kind;
  const bool per_rank =
      collective.kind == all_gather || collective.kind == reduce_scatter || collective.kind == all_to_all;
  return std::int64_t{collective.chunks} * (per_rank ? collective.ranks : 1);
}

}  // namespace weft::formats
