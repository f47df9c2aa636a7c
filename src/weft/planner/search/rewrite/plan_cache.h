// weft/planner/search/rewrite/plan_cache.h -- on-disk cache of planned regions.
//
//   FOLDER/3f9a..c1.plan    weft-plan-cache 1 3f9a..c1 2310 77b0..09    key, length, digest of the rest
//                           ..                                          2310 bytes
//
// The key is a digest of everything that the content depends on, so all writers of an entry write
// the same bytes, and the processes of one user can share a cache. Entries are renamed into place
// atomically, so killed processes leave no partial entries. Anything else in the folder (a partial
// entry, garbage, content of another entry, no folder) is a miss. The folder is private to the user
// (base/private_folder.h): one that others may write to is not used. Above the size limit, the
// least recently used entries are removed first.
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

  // The folder is created when the first entry is stored.
  explicit PlanCache(std::string folder, std::int64_t most_bytes = kStandardLimit)
      : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  Status check() const;  // fails if the folder exists but is not private: the cache is then disabled
  std::optional<std::string> find(const Digest& key);

  // Fails if the folder is not writable or another process is writing this entry. Callers can
  // ignore the failure. Content larger than the limit is not stored.
  Status store(const Digest& key, std::string_view content);

  std::int64_t hits() const { return hits_; }
  std::int64_t misses() const { return misses_; }

 private:
  void make_room(const PrivateFolder& folder, std::int64_t bytes);

  std::string folder_;
  std::int64_t most_bytes_;
  std::optional<std::int64_t> bytes_;  // in the folder at the last scan, plus what was added since
  std::int64_t hits_ = 0, misses_ = 0;
};

}  // namespace weft::search
