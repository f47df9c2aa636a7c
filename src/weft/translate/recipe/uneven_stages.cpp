#include "weft/translate/recipe/uneven_stages.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "weft/base/number.h"
#include "weft/translate/recipe/pipeline_layout.h"
#include "weft/translate/recipe/settings.h"

namespace weft::recipe {
namespace {

class UnevenStages {
 public:
  explicit UnevenStages(Recipe& recipe) : recipe_(recipe) {}

  Status read() {
    const auto layout = text_of("pipeline-model-parallel-layout");
    if (layout) return read_layout(*layout);
    WEFT_TRY(first, layers_of("decoder-first-pipeline-num-layers"));
    WEFT_TRY(last, layers_of("decoder-last-pipeline-num-layers"));
    const bool counts_embedding = text_of("account-for-embedding-in-pipeline-split").has_value(),
               counts_loss = text_of("account-for-loss-in-pipeline-split").has_value();
    const bool states = first > 0 || last > 0, counts = counts_embedding || counts_loss;
    if (states && counts)
      return user_error(
          "layers of the first or the last stage are stated, so the embedding and the loss do not count as "
          "layers",
          "remove --decoder-.. or --account-for-..");
    // The model may be given beside the flags.
    if ((!states && !counts) || recipe_.model.layers == 0) return {};
    const std::int64_t chunks = recipe_.virtual_stages, ranks = recipe_.pipeline;
    const std::int64_t all = recipe_.model.layers + (counts_embedding ? 1 : 0) + (counts_loss ? 1 : 0);
    const std::int64_t others = ranks - (first > 0 ? 1 : 0) - (last > 0 ? 1 : 0);
    const std::int64_t rest = all - first - last;
    if (rest < 0 || (others > 0 ? rest % (others * chunks) != 0 : rest != 0) || first % chunks != 0 ||
        last % chunks != 0)
      return user_error(fmt::format("the stages do not share the layers evenly: {} on {} stages{}", rest,
                                    others,
                                    chunks > 1 ? fmt::format(" of {} chunks", chunks) : std::string()));
    const std::int64_t each = others > 0 ? rest / others : 0;
    std::vector<std::int64_t> made;
    for (std::int64_t run = 0; run < ranks * chunks; ++run) {
      const std::int64_t rank = run % ranks;
      made.push_back((rank == 0 && first > 0 ? first : rank == ranks - 1 && last > 0 ? last : each) / chunks);
    }
    made.front() -= counts_embedding ? 1 : 0;
    made.back() -= counts_loss ? 1 : 0;
    take(std::move(made));
    return {};
  }

 private:
  static bool is_flag(const std::pair<std::string, std::string>& other, std::string_view flag) {
    return other.first.starts_with("--") && other.first.substr(2) == flag;
  }
  std::optional<std::string> text_of(std::string_view flag) const {
    const auto found =
        std::ranges::find_if(recipe_.others, [&](const auto& one) { return is_flag(one, flag); });
    if (found == recipe_.others.end()) return std::nullopt;
    return std::string(without_quotes(found->second));
  }
  Result<std::int64_t> layers_of(std::string_view flag) const {
    const auto text = text_of(flag);
    if (!text) return std::int64_t{0};
    return read_flag_count(flag, *text);
  }

  Status read_layout(std::string_view text) {
    constexpr std::string_view kFlag = "--pipeline-model-parallel-layout";
    auto made = read_pipeline_layout(text);
    if (!made.ok()) {
      Error error = std::move(made).error();
      error.message = fmt::format("{}: {}", kFlag, error.message);
      return error;
    }
    const auto runs = static_cast<std::int64_t>(made->size());
    if (runs % recipe_.pipeline != 0 ||
        (recipe_.virtual_stages > 1 && runs != recipe_.pipeline * recipe_.virtual_stages))
      return user_error(fmt::format("{} has {} virtual stage{}, for {} stages", kFlag, runs,
                                    runs == 1 ? "" : "s", recipe_.pipeline));
    const std::int64_t layers = std::accumulate(made->begin(), made->end(), std::int64_t{0});
    if (recipe_.model.layers > 0 && layers != recipe_.model.layers)
      return user_error(
          fmt::format("{} has {} layers, and --num-layers is {}", kFlag, layers, recipe_.model.layers));
    // Virtual stages without layers, such as one with a layer for further tokens, are not estimated.
    if (made->size() > 2 && std::count(made->begin() + 1, made->end() - 1, 0) > 0) return {};
    recipe_.virtual_stages = runs / recipe_.pipeline;
    take(*std::move(made));
    return {};
  }

  // The recipe states them now, not the flags.
  void take(std::vector<std::int64_t> made) {
    const bool equal = std::ranges::all_of(made, [&](std::int64_t one) { return one == made.front(); });
    if (!equal) recipe_.stage_layers = std::move(made);
    for (const std::string_view flag : kStageFlags) {
      std::erase_if(recipe_.others, [&](const auto& one) { return is_flag(one, flag); });
      std::erase_if(recipe_.notes,
                    [&](const std::string& note) { return note.starts_with(fmt::format("--{}: ", flag)); });
    }
  }

  static constexpr std::string_view kStageFlags[] = {
      "pipeline-model-parallel-layout", "decoder-first-pipeline-num-layers",
      "decoder-last-pipeline-num-layers", "account-for-embedding-in-pipeline-split",
      "account-for-loss-in-pipeline-split"};
  Recipe& recipe_;
};

}  // namespace

Status read_uneven_stages(Recipe& recipe) { return UnevenStages(recipe).read(); }

Result<std::int64_t> read_flag_count(std::string_view flag, std::string_view text) {
  const auto count = read_number<std::int64_t>(text, 1, std::int64_t{1} << 40);
  if (count) return *count;
  return user_error(fmt::format("--{}: expected a whole number of at least 1, found '{}'", flag, text));
}

}  // namespace weft::recipe
