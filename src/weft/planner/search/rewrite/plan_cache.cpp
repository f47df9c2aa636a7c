#include "weft/planner/search/rewrite/plan_cache.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include <fmt/format.h>

namespace weft::search {
namespace {

constexpr std::size_t kLongestHeader = 128;

std::string header_of(const Digest& key, std::string_view content) {
  return fmt::format("weft-plan-cache 1 {} {} {}\n", key.hex(), content.size(),
                     Hasher().text(content).digest().hex());
}

std::string file_of(const Digest& key) { return fmt::format("{}.plan", key.hex()); }

// Entries, and partial files of killed writers, which take space too.
std::vector<PrivateFolder::Entry> entries_of(const PrivateFolder& folder) {
  std::vector<PrivateFolder::Entry> entries = folder.files();
  std::erase_if(entries, [](const PrivateFolder::Entry& entry) {
    return !entry.name.ends_with(".plan") && !entry.name.ends_with(".plan.partial");
  });
  return entries;
}

}  // namespace

Status PlanCache::check() const { return PrivateFolder::check(folder_); }

std::optional<std::string> PlanCache::find(const Digest& key) {
  ++misses_;
  const auto folder = PrivateFolder::open(folder_);
  if (!folder.ok()) return std::nullopt;
  const auto bytes = folder->read(file_of(key), most_bytes_);
  if (!bytes.ok() || !*bytes) return std::nullopt;
  const std::string& text = **bytes;
  const std::size_t line = text.substr(0, kLongestHeader).find('\n');
  if (line == std::string::npos) return std::nullopt;
  std::string content = text.substr(line + 1);
  if (text.substr(0, line + 1) != header_of(key, content)) return std::nullopt;
  folder->mark_as_used(file_of(key));
  --misses_;
  ++hits_;
  return content;
}

Status PlanCache::store(const Digest& key, std::string_view content) {
  const std::string entry = header_of(key, content) + std::string(content);
  const auto bytes = static_cast<std::int64_t>(entry.size());
  if (bytes > most_bytes_) return {};
  WEFT_TRY(folder, PrivateFolder::make(folder_));
  make_room(folder, bytes);
  WEFT_TRY_STATUS(folder.write(file_of(key), entry));
  *bytes_ += bytes;
  return {};
}

void PlanCache::make_room(const PrivateFolder& folder, std::int64_t bytes) {
  if (bytes_ && *bytes_ + bytes <= most_bytes_) return;
  std::vector<PrivateFolder::Entry> entries = entries_of(folder);
  bytes_ = 0;
  for (const PrivateFolder::Entry& entry : entries) *bytes_ += entry.bytes;
  if (*bytes_ + bytes <= most_bytes_) return;
  std::ranges::sort(entries, {}, [](const PrivateFolder::Entry& entry) {
    return std::tuple(entry.used.tv_sec, entry.used.tv_nsec, std::string_view(entry.name));
  });
  // Evicts down to three quarters, so that a full cache is not scanned for every entry.
  const std::int64_t enough = std::min(most_bytes_ - bytes, most_bytes_ / 4 * 3);
  for (const PrivateFolder::Entry& entry : entries) {
    if (*bytes_ <= enough) break;
    folder.remove(entry.name);
    *bytes_ -= entry.bytes;
  }
}

}  // namespace weft::search
