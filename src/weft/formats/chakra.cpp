#include "weft/formats/chakra.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/file.h"
#include "weft/base/number.h"
#include "weft/formats/json_node.h"

namespace weft::formats {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostTraceBytes = std::int64_t{1} << 30;
constexpr std::int32_t kMostRanks = 1 << 16;

// "llama.12.et" -> {"llama", 12}
struct FileName {
  std::string prefix;
  std::int32_t rank = 0;
};

std::optional<FileName> read_file_name(std::string_view name) {
  if (!name.ends_with(".et")) return {};
  name.remove_suffix(3);
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {};
  FileName found{std::string(name.substr(0, dot)), 0};
  const auto rank = read_number<std::int32_t>(name.substr(dot + 1), 0, kMostRanks - 1);
  if (!rank) return {};
  found.rank = *rank;
  return found;
}

struct FoundFiles {
  fs::path prefix;
  std::set<std::int32_t> ranks;
};

Result<FoundFiles> find_files(const std::string& folder_or_prefix) {
  std::error_code error;
  const fs::path given = folder_or_prefix;
  const bool is_folder = fs::is_directory(given, error);
  const fs::path folder = is_folder ? given : given.has_parent_path() ? given.parent_path() : fs::path(".");
  std::map<std::string, std::set<std::int32_t>> found;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (const auto name = read_file_name(entry->path().filename().string()))
      found[name->prefix].insert(name->rank);
  if (error) return environment_error(fmt::format("cannot list {}: {}", folder.string(), error.message()));
  const std::string wanted =
      is_folder ? (found.size() == 1 ? found.begin()->first : "") : given.filename().string();
  if (is_folder && found.size() > 1) {
    std::vector<std::string> prefixes;
    for (const auto& [prefix, ranks] : found) prefixes.push_back(prefix);
    return user_error(
        fmt::format("{} has traces of several runs: {}", given.string(), fmt::join(prefixes, ", ")),
        fmt::format("give one: {}", (given / prefixes[0]).string()));
  }
  if (!found.contains(wanted))
    return user_error(
        fmt::format("found no traces {}", ((is_folder ? given / "*" : given).string()) + ".0.et, .1.et, .."),
        "a trace has one file per rank: PREFIX.RANK.et");
  return FoundFiles{folder / wanted, found[wanted]};
}

Status expect_all_ranks(const FoundFiles& files) {
  std::vector<std::int32_t> missing;
  for (std::int32_t rank = 0; rank < *files.ranks.rbegin(); ++rank)
    if (!files.ranks.contains(rank)) missing.push_back(rank);
  if (missing.empty()) return {};
  constexpr std::size_t kMostNamed = 10;
  const std::size_t named = std::min(missing.size(), kMostNamed);
  return user_error(
      fmt::format("found traces up to rank {}, but none for rank {}{}", *files.ranks.rbegin(),
                  fmt::join(missing.begin(), missing.begin() + static_cast<std::ptrdiff_t>(named), ", "),
                  missing.size() > named ? fmt::format(" and {} more", missing.size() - named) : ""));
}

std::string file_of(const fs::path& prefix, std::size_t rank) {
  return fmt::format("{}.{}.et", prefix.string(), rank);
}

}  // namespace

Status parse_chakra_groups(std::string_view json, sim::ExecutionTrace& trace) {
  WEFT_TRY(root, parse_json(json));
  const JsonNode top(root);
  WEFT_TRY_STATUS(top.expect_object());
  for (const auto& [name, unused] : root.items()) {
    WEFT_TRY(ranks, top.wholes(name.c_str(), 0, kMostRanks - 1));
    trace.groups.push_back({name, std::move(ranks)});
  }
  return {};
}

Result<sim::ExecutionTrace> read_chakra(const std::string& folder_or_prefix) {
  WEFT_TRY(files, find_files(folder_or_prefix));
  WEFT_TRY_STATUS(expect_all_ranks(files));
  sim::ExecutionTrace trace;
  const std::string groups = files.prefix.string() + ".json";
  std::error_code error;
  if (fs::exists(groups, error)) {
    WEFT_TRY(text, read_file(groups, kMostTraceBytes));
    if (const Status parsed = parse_chakra_groups(text, trace); !parsed.ok())
      return user_error(fmt::format("{}: {}", groups, parsed.error().message), parsed.error().hint);
  }
  for (std::size_t rank = 0; rank < files.ranks.size(); ++rank) {
    const std::string file = file_of(files.prefix, rank);
    WEFT_TRY(bytes, read_file(file, kMostTraceBytes));
    WEFT_TRY_STATUS(parse_chakra(bytes, file, trace));
  }
  return trace;
}

Status write_chakra(const sim::ExecutionTrace& trace, const std::string& prefix) {
  for (std::size_t rank = 0; rank < trace.ranks.size(); ++rank)
    WEFT_TRY_STATUS(write_file_atomically(file_of(prefix, rank), print_chakra(trace, rank)));
  if (trace.groups.empty()) return {};
  return write_file_atomically(prefix + ".json", print_chakra_groups(trace));
}

}  // namespace weft::formats
