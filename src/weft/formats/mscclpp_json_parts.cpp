#include "weft/formats/mscclpp_json_parts.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "weft/formats/value.h"

namespace weft::formats {

using namespace collective;

namespace {
constexpr std::int32_t kMostPartNumber = std::numeric_limits<std::int32_t>::max();
}  // namespace

Result<OneSided> read_plan_head(const JsonNode& top) {
  OneSided plan;
  WEFT_TRY(title, top.text("name"));
  plan.name = title;
  WEFT_TRY(word, top.text("collective"));
  plan.collective_word = word;
  WEFT_TRY(protocol, top.text("protocol"));
  if (protocol != "Simple" && protocol != "LL") {
    WEFT_TRY(node, top.at("protocol"));
    return node.error(fmt::format("expected Simple or LL, found '{}'", shown(protocol)));
  }
  plan.protocol = protocol == "LL" ? Protocol::ll : Protocol::simple;
  WEFT_TRY(in_place, top.truth("inplace", false));
  plan.in_place = in_place;
  WEFT_TRY(reuse, top.truth("reuse_resources", false));
  plan.reuse_resources = reuse;
  WEFT_TRY(double_scratch, top.truth("use_double_scratch_buffer", false));
  plan.double_scratch = double_scratch;
  if (top.has("num_threads_per_block")) {
    WEFT_TRY(threads, top.whole("num_threads_per_block", 1, kMostPartNumber));
    plan.threads_per_block = threads;
  }
  if (top.has("buffer_alignment")) {
    WEFT_TRY(alignment, top.whole("buffer_alignment", 1, kMostPartNumber));
    plan.alignment = alignment;
  }
  WEFT_TRY(min_bytes, top.size("min_message_size", 0));
  WEFT_TRY(max_bytes, top.size("max_message_size", UINT64_MAX));
  plan.min_bytes = min_bytes;
  plan.max_bytes = max_bytes;
  return plan;
}

Result<Buffer> read_buffer(const JsonNode& node, const char* key) {
  WEFT_TRY(word, node.text(key));
  if (word == "i") return Buffer::input;
  if (word == "o") return Buffer::output;
  if (word == "s") return Buffer::scratch;
  WEFT_TRY(value, node.at(key));
  return value.error(fmt::format("expected i, o or s, found '{}'", shown(word)));
}

Status expect_id(const JsonNode& node, std::size_t index) {
  WEFT_TRY(id, node.whole("id", 0, kMostPartNumber));
  if (static_cast<std::size_t>(id) == index) return {};
  WEFT_TRY(value, node.at("id"));
  return value.error(fmt::format("expected {}, its place in the list, found {}", index, id));
}

Status settle_collective(const JsonNode& top, OneSided& plan) {
  const auto ranks = static_cast<std::int32_t>(plan.ranks.size());
  plan.collective = {};
  plan.collective.ranks = ranks;
  const auto kind = find_kind(plan.collective_word);
  if (kind != Kind::all_reduce && kind != Kind::all_gather && kind != Kind::reduce_scatter &&
      kind != Kind::all_to_all)
    return {};
  plan.collective.kind = *kind;
  const std::int32_t inputs = *kind == Kind::reduce_scatter || *kind == Kind::all_to_all ? ranks : 1;
  const std::int32_t outputs = *kind == Kind::all_gather || *kind == Kind::all_to_all ? ranks : 1;
  const OneSidedRank& first = plan.ranks.front();
  plan.collective.chunks =
      first.input_chunks > 0 ? first.input_chunks / inputs : first.output_chunks / outputs;
  const std::int64_t chunks = plan.collective.chunks;
  WEFT_TRY(gpus, top.list("gpus"));
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const OneSidedRank& rank = plan.ranks[i];
    // In place, a buffer that is part of the other may be omitted.
    const bool fits = (rank.input_chunks == chunks * inputs || rank.input_chunks == 0) &&
                      (rank.output_chunks == chunks * outputs || rank.output_chunks == 0);
    if (!fits || chunks < 1)
      return gpus[i].error(
          fmt::format("expected {} chunks of input and {} of output for {} of {} ranks, found {} and {}",
                      std::max<std::int64_t>(chunks, 1) * inputs, std::max<std::int64_t>(chunks, 1) * outputs,
                      name(*kind), ranks, rank.input_chunks, rank.output_chunks));
  }
  return {};
}

}  // namespace weft::formats
