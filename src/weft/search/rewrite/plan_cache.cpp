#include "weft/search/rewrite/plan_cache.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <compare>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "weft/base/file.h"

namespace weft::search {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestHeader = 128;

std::string header_of(const Digest& key, std::string_view content) {
  return fmt::format("weft-plan-cache 1 {} {} {}\n", key.hex(), content.size(),
                     Hasher().text(content).digest().hex());
}

// Every file below the folder, what killed writers left behind included: it takes room too.
struct Stored {
  fs::file_time_type used;
  std::string path;
  std::int64_t bytes = 0;
};

std::vector<Stored> list(const std::string& folder) {
  std::vector<Stored> found;
  std::error_code problem;
  // Others may delete what is being listed: an entry that cannot be looked at is left out.
  for (fs::recursive_directory_iterator at(folder, problem), end; !problem && at != end;
       at.increment(problem)) {
    std::error_code gone;
    if (!at->is_regular_file(gone) || gone) continue;
    const std::string path = at->path().string();
    if (!path.ends_with(".plan") && !path.ends_with(".plan.partial")) continue;
    const std::uintmax_t bytes = at->file_size(gone);
    const fs::file_time_type used = gone ? fs::file_time_type() : at->last_write_time(gone);
    if (!gone) found.push_back({used, path, static_cast<std::int64_t>(bytes)});
  }
  return found;
}

void mark_as_used(const std::string& path) {
  const std::array<timespec, 2> now = {{{0, UTIME_NOW}, {0, UTIME_NOW}}};
  // A cache that may only be read is a cache all the same.
  static_cast<void>(utimensat(AT_FDCWD, path.c_str(), now.data(), 0));
}

}  // namespace

std::string PlanCache::path(const Digest& key) const {
  const std::string name = key.hex();
  return fmt::format("{}/{}/{}.plan", folder_, name.substr(0, 2), name);
}

std::optional<std::string> PlanCache::find(const Digest& key) {
  const std::string place = path(key);
  ++misses_;
  // Most keys are not there, and read_file() would look for a name like it.
  std::error_code problem;
  if (!fs::is_regular_file(place, problem)) return std::nullopt;
  Result<std::string> bytes = read_file(place, most_bytes_);
  if (!bytes.ok()) return std::nullopt;
  const std::size_t line = bytes->substr(0, kLongestHeader).find('\n');
  if (line == std::string::npos) return std::nullopt;
  std::string content = bytes->substr(line + 1);
  if (bytes->substr(0, line + 1) != header_of(key, content)) return std::nullopt;
  mark_as_used(place);
  --misses_;
  ++hits_;
  return content;
}

Status PlanCache::store(const Digest& key, std::string_view content) {
  const std::string header = header_of(key, content);
  const auto bytes = static_cast<std::int64_t>(header.size() + content.size());
  if (bytes > most_bytes_) return {};
  make_room(bytes);
  const std::string place = path(key);
  std::error_code problem;
  fs::create_directories(fs::path(place).parent_path(), problem);
  if (problem)
    return world_error(fmt::format("cannot make the folder of {}: {}", place, problem.message()),
                       "name a folder that is yours for the plan cache");
  const std::array<std::string_view, 2> pieces = {header, content};
  WEFT_TRY_STATUS(write_file_atomically(place, pieces));
  *bytes_ += bytes;
  return {};
}

void PlanCache::make_room(std::int64_t bytes) {
  if (bytes_ && *bytes_ + bytes <= most_bytes_) return;
  std::vector<Stored> entries = list(folder_);
  bytes_ = 0;
  for (const Stored& entry : entries) *bytes_ += entry.bytes;
  if (*bytes_ + bytes <= most_bytes_) return;
  std::ranges::sort(entries, [](const Stored& a, const Stored& b) {
    return a.used != b.used ? a.used < b.used : a.path < b.path;
  });
  // Down to three quarters, so that a full cache is not looked through for every entry.
  const std::int64_t enough = std::min(most_bytes_ - bytes, most_bytes_ / 4 * 3);
  for (const Stored& entry : entries) {
    if (*bytes_ <= enough) break;
    std::error_code problem;
    fs::remove(entry.path, problem);
    *bytes_ -= entry.bytes;
  }
}

}  // namespace weft::search
