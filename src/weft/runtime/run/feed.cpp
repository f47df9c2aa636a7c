#include "weft/runtime/run/feed.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/base/nearest.h"
#include "weft/runtime/run/feed_inputs.h"
#include "weft/runtime/run/made_up_feed.h"
#include "weft/runtime/run/table_feed.h"
#include "weft/runtime/run/text_feed.h"
#include "weft/runtime/run/token_feed.h"
#include "weft/text/token_file.h"

namespace weft::run {
namespace {

using nlohmann::json;

bool is_table(std::string_view path) {
  if (path.ends_with(".gz")) path.remove_suffix(3);
  return path.ends_with(".csv") || path.ends_with(".npy") || path.ends_with(".npz");
}

// Each input must have one file, and each file one input.
Status check_files(std::span<const DataFile> files, std::span<const FeedInput> inputs) {
  if (files.size() == 1 && files[0].input.empty()) return {};
  std::vector<std::string_view> names;
  for (const FeedInput& input : inputs) names.push_back(input.name);
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (std::ranges::find(names, files[i].input) == names.end()) {
      std::string hint = did_you_mean(files[i].input, names);
      return user_error(fmt::format("no input is named {}", files[i].input),
                        hint.empty() ? fmt::format("inputs are {}", fmt::join(names, ", ")) : hint);
    }
    if (std::ranges::find(files.first(i), files[i].input, &DataFile::input) != files.first(i).end())
      return user_error(fmt::format("input {} has two files", files[i].input), "remove one of them");
    if (!is_table(files[i].path))
      return user_error(fmt::format("{} is not a table and cannot feed a single input", files[i].path),
                        "use .csv, .npy or .npz for a single input");
  }
  for (const std::string_view name : names)
    if (std::ranges::find(files, name, &DataFile::input) == files.end())
      return user_error(fmt::format("input {} has no file", name),
                        fmt::format("add {} = 'file.npy' to FROM", name));
  return {};
}

std::unique_ptr<Feed> with_names(std::unique_ptr<Feed> feed, std::span<const FeedInput> inputs) {
  std::vector<std::string> names;
  for (const FeedInput& input : inputs) names.push_back(input.name);
  feed->name_inputs(std::move(names));
  return feed;
}

}  // namespace

void Feed::fill(exec::Rank& rank, std::int64_t step) const { fill(memory_of(rank, input_names()), step); }

Result<std::unique_ptr<Feed>> open_feed(std::span<const DataFile> files, const plan::Graph& graph,
                                        const FeedOptions& options) {
  WEFT_CHECK(!files.empty());
  const std::vector<FeedInput> inputs = inputs_of(graph);
  WEFT_TRY_STATUS(check_files(files, inputs));
  auto feed = text::is_token_file(files[0].path) ? open_tokens(files[0], graph, inputs, options)
              : is_table(files[0].path)          ? open_table(files, graph, inputs, options)
                                                 : open_text(files[0], graph, inputs, options);
  if (!feed.ok()) return feed;
  return with_names(std::move(*feed), inputs);
}

Result<std::unique_ptr<Feed>> open_feed(const std::string& path, const plan::Graph& graph,
                                        const FeedOptions& options) {
  const DataFile file{{}, path};
  return open_feed({&file, 1}, graph, options);
}

std::unique_ptr<Feed> made_up_feed(const plan::Graph& graph, std::uint64_t seed) {
  const std::vector<FeedInput> inputs = inputs_of(graph);
  return with_names(make_up_feed(inputs, seed), inputs);
}

Result<std::unique_ptr<Feed>> open_recipe(const std::string& recipe, const plan::Graph& graph) {
  const json read = json::parse(recipe);
  if (read.contains("files")) {
    std::vector<DataFile> files;
    for (const json& file : read.at("files")) files.push_back({file.at(0), file.at(1)});
    return open_feed(files, graph,
                     {.holdout = read.at("holdout"),
                      .seed = read.at("seed"),
                      .partial_batches = read.at("partial_batches"),
                      .holdout_drawn = read.at("holdout_drawn")});
  }
  std::vector<FeedInput> inputs = inputs_of(graph);
  const json& limits = read.at("limits");
  WEFT_CHECK(limits.size() == inputs.size(), "a recipe of other inputs");
  for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i].limit = limits[i];
  return with_names(make_up_feed(inputs, read.at("made_up")), inputs);
}

}  // namespace weft::run
