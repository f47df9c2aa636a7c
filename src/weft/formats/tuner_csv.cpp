#include "weft/formats/tuner_csv.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "weft/base/nearest.h"

namespace weft::formats {
namespace {

constexpr std::array<std::string_view, 5> kCollectives = {"broadcast", "reduce", "allgather", "reducescatter",
                                                          "allreduce"};
constexpr std::array<std::string_view, 7> kAlgorithms = {
    "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
constexpr std::array<std::string_view, 3> kProtocols = {"ll", "ll128", "simple"};

Status check_word(std::string_view what, std::string_view word, std::span<const std::string_view> known) {
  if (std::ranges::find(known, word) != known.end()) return {};
  return user_error(fmt::format("the tuner does not know the {}: {}", what, word), did_you_mean(word, known));
}

Status check_row(const TunerRow& row) {
  WEFT_TRY_STATUS(check_word("collective", row.coll, kCollectives));
  WEFT_TRY_STATUS(check_word("algorithm", row.algo, kAlgorithms));
  WEFT_TRY_STATUS(check_word("protocol", row.proto, kProtocols));
  if (row.min < 0 || row.max < row.min)
    return user_error(fmt::format("a row covers no message size: {} to {} bytes", row.min, row.max));
  for (const std::int32_t value : {row.channels, row.nNodes, row.nRanks, row.numPipeOps, row.regBuff})
    if (value < -1) return user_error(fmt::format("a row has a number below -1: {}", value));
  return {};
}

}  // namespace

Result<std::string> write_tuner_csv(const std::vector<TunerRow>& rows) {
  std::string out = "# coll,min,max,algo,proto,channels,nNodes,nRanks,numPipeOps,regBuff\n";
  for (const TunerRow& row : rows) {
    WEFT_TRY_STATUS(check_row(row));
    out += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", row.coll, row.min, row.max, row.algo, row.proto,
                       row.channels, row.nNodes, row.nRanks, row.numPipeOps, row.regBuff);
  }
  return out;
}

}  // namespace weft::formats
