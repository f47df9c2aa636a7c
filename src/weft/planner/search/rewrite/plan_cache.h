// weft/planner/search/rewrite/plan_cache.h -- regions that were planned once are not planned again. On disk.
//
//   FOLDER/3f9a..c1.plan    weft-plan-cache 1 3f9a..c1 2310 77b0..09    key, length, digest of the rest
//                           ..                                          2310 bytes
//
// The key is a digest of all that the content depends on, so whoever writes an entry writes the same
// bytes: processes of one user share a cache. Entries get their name in one step, so a kill at any moment
// leaves whole entries only. Whatever else lies there (half an entry, garbage, another entry's content, no
// folder at all) counts as not found. The folder is private to the user (base/private_folder.h): one that
// others may write to is not used. When the entries outgrow the limit, those that were used longest ago go
// first.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weft/base/hash.h"
#include "weft/base/private_folder.h"
#include "weft/base/result.h"

namespace weft::search {

class PlanCache {
 public:
  static constexpr std::int64_t kStandardLimit = std::int64_t{256} << 20;

  // The folder is made when the first entry is stored.
  explicit PlanCache(std::string folder, std::int64_t most_bytes = kStandardLimit)
      : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  Status check() const;  // fails where the folder is there and not private: then nothing is found or kept
  std::optional<std::string> find(const Digest& key);

  // Fails where the folder cannot be written, or another process writes this entry just now: whoever
  // plans goes on without. What is larger than the limit is not kept.
  Status store(const Digest& key, std::string_view content);

  std::int64_t hits() const { return hits_; }
  std::int64_t misses() const { return misses_; }

 private:
  void make_room(const PrivateFolder& folder, std::int64_t bytes);

  std::string folder_;
  std::int64_t most_bytes_;
  std::optional<std::int64_t> bytes_;  // in the folder, when it was last looked through, and what we added
  std::int64_t hits_ = 0, misses_ = 0;
};

}  // namespace weft::search
