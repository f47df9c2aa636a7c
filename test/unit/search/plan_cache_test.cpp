// The plan cache has only whole entries, whichever processes write, read or are killed.
#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "temporary_folder.h"
#include "weft/base/file.h"
#include "weft/planner/search/rewrite/plan_cache.h"

namespace weft::search {
namespace {

namespace fs = std::filesystem;

Digest key(std::uint64_t number) { return Hasher().number(number).digest(); }

std::string content(std::uint64_t number) {
  return std::string(number % 700, static_cast<char>('a' + number % 26)) + std::to_string(number);
}

// As a careless writer would.
void overwrite(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::vector<std::string> files(const std::string& folder) {
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) found.push_back(entry.path().string());
  return found;
}

class PlanCacheTest : public testing::Test {
 protected:
  const TemporaryFolder folder_;
  const std::string place_ = folder_ / "plans";
};

TEST_F(PlanCacheTest, StoredEntriesAreFound) {
  PlanCache first(place_);
  EXPECT_EQ(first.find(key(1)), std::nullopt);
  ASSERT_TRUE(first.store(key(1), "a plan\n").ok());
  ASSERT_TRUE(first.store(key(2), "").ok());
  PlanCache second(place_);
  EXPECT_EQ(second.find(key(1)), "a plan\n");
  EXPECT_EQ(second.find(key(2)), "");
  EXPECT_EQ(second.find(key(3)), std::nullopt);
  EXPECT_EQ(second.hits(), 2);
  EXPECT_EQ(second.misses(), 1);
}

TEST_F(PlanCacheTest, IgnoresGarbage) {
  PlanCache cache(place_);
  ASSERT_TRUE(cache.store(key(1), "a plan that is long enough to be cut").ok());
  const std::string path = files(place_).at(0);
  const std::string whole = *read_file(path, 1 << 20);
  for (std::size_t length = 0; length < whole.size(); length += 3) {
    overwrite(path, whole.substr(0, length));
    EXPECT_EQ(cache.find(key(1)), std::nullopt) << length << " bytes";
  }
  for (std::size_t at = 0; at < whole.size(); at += 2) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    overwrite(path, flipped);
    EXPECT_EQ(cache.find(key(1)), std::nullopt) << "byte " << at;
  }
  overwrite(path, whole + "more");
  EXPECT_EQ(cache.find(key(1)), std::nullopt);
  ASSERT_TRUE(cache.store(key(1), "mended").ok());
  EXPECT_EQ(cache.find(key(1)), "mended");
}

TEST_F(PlanCacheTest, RejectsAnEntryUnderAnotherName) {
  PlanCache cache(place_);
  ASSERT_TRUE(cache.store(key(1), "one").ok());
  const std::string one = files(place_).at(0);
  ASSERT_TRUE(cache.store(key(2), "two").ok());
  for (const std::string& path : files(place_))
    if (path != one) fs::copy_file(one, path, fs::copy_options::overwrite_existing);
  EXPECT_EQ(cache.find(key(1)), "one");
  EXPECT_EQ(cache.find(key(2)), std::nullopt);
}

TEST_F(PlanCacheTest, AnInvalidFolderFailsToStoreAndFindsNothing) {
  overwrite(place_, "a file stands where the folder should");
  PlanCache cache(place_);
  EXPECT_EQ(cache.find(key(1)), std::nullopt);
  const Status stored = cache.store(key(1), "a plan");
  ASSERT_FALSE(stored.ok());
  EXPECT_EQ(stored.error().fault, Fault::world);
}

TEST_F(PlanCacheTest, DoesNotUseAFolderThatOthersMayWrite) {
  PlanCache cache(place_);
  ASSERT_TRUE(cache.store(key(1), "a plan").ok());
  EXPECT_TRUE(cache.check().ok());
  fs::permissions(place_, fs::perms::all);
  EXPECT_FALSE(cache.check().ok());
  EXPECT_EQ(cache.find(key(1)), std::nullopt);
  EXPECT_FALSE(cache.store(key(2), "a plan").ok());
}

TEST_F(PlanCacheTest, DoesNotFollowLinks) {
  PlanCache cache(place_), other(folder_ / "other");
  ASSERT_TRUE(cache.store(key(1), "a plan").ok());
  ASSERT_TRUE(other.store(key(1), "another").ok());
  const std::string path = files(place_).at(0);
  fs::remove(path);
  fs::create_symlink(files(folder_ / "other").at(0), path);
  EXPECT_EQ(cache.find(key(1)), std::nullopt);
}

TEST_F(PlanCacheTest, EvictsTheLeastRecentlyUsed) {
  const std::string kilobyte(1000, 'x');
  PlanCache cache(place_, 10'000);
  for (std::uint64_t i = 0; i < 8; ++i) {
    ASSERT_TRUE(cache.store(key(i), kilobyte).ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // file times are this coarse
  }
  EXPECT_EQ(cache.find(key(0)), kilobyte);  // used again: now the most recent
  ASSERT_TRUE(cache.store(key(8), kilobyte).ok());
  ASSERT_TRUE(cache.store(key(9), kilobyte).ok());
  EXPECT_EQ(cache.find(key(1)), std::nullopt);
  EXPECT_EQ(cache.find(key(0)), kilobyte);
  EXPECT_EQ(cache.find(key(9)), kilobyte);
  std::uintmax_t bytes = 0;
  for (const std::string& path : files(place_)) bytes += fs::file_size(path);
  EXPECT_LE(bytes, 10'000u);
}

TEST_F(PlanCacheTest, DoesNotKeepEntriesLargerThanTheLimit) {
  PlanCache cache(place_, 1000);
  ASSERT_TRUE(cache.store(key(1), "small").ok());
  ASSERT_TRUE(cache.store(key(2), std::string(2000, 'x')).ok());
  EXPECT_EQ(cache.find(key(1)), "small");
  EXPECT_EQ(cache.find(key(2)), std::nullopt);
}

// Writers of the same entries, readers, and a writer with a small limit, all at once.
TEST_F(PlanCacheTest, SupportsConcurrentUse) {
  constexpr std::uint64_t kEntries = 8;
  std::vector<std::thread> threads;
  for (int worker = 0; worker < 4; ++worker)
    threads.emplace_back([&, worker] {
      PlanCache cache(place_, worker == 3 ? 4000 : PlanCache::kStandardLimit);
      for (std::uint64_t i = 0; i < kEntries; ++i) {
        // If another writer is active, that one stores it.
        static_cast<void>(cache.store(key(i), content(i)));
        for (std::uint64_t j = 0; j < kEntries; ++j)
          EXPECT_EQ(cache.find(key(j)).value_or(content(j)), content(j));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(PlanCacheTest, AKillLeavesOnlyWholeEntries) {
  constexpr std::uint64_t kEntries = 10;
  fs::create_directories(place_);  // the first one may be killed before it creates it
  fs::permissions(place_, fs::perms::owner_all);
  for (int round = 0; round < 12; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      PlanCache cache(place_);
      for (std::uint64_t i = 0;; i = (i + 1) % kEntries) static_cast<void>(cache.store(key(i), content(i)));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(300 + 1100 * round));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    PlanCache cache(place_);
    for (std::uint64_t i = 0; i < kEntries; ++i)
      EXPECT_EQ(cache.find(key(i)).value_or(content(i)), content(i));
    for (const std::string& path : files(place_)) {
      if (path.ends_with(".partial")) continue;
      const std::string bytes = *read_file(path, 1 << 20);
      EXPECT_EQ(bytes.substr(0, 18), "weft-plan-cache 1 ") << path;
    }
  }
  // Leftovers of killed writers do not interfere.
  PlanCache cache(place_);
  for (std::uint64_t i = 0; i < kEntries; ++i) {
    ASSERT_TRUE(cache.store(key(i), content(i)).ok());
    EXPECT_EQ(cache.find(key(i)), content(i));
  }
}

}  // namespace
}  // namespace weft::search
