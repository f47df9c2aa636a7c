// Packing of hand-made cases, and of published hard ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>

#include "weft/base/random.h"
#include "weft/program/memory/boxes.h"
#include "weft/program/memory/check.h"
#include "weft/program/memory/pack.h"

namespace weft::memory {
namespace {

using Offsets = std::vector<std::int64_t>;

// Packs, checks the result and returns its peak; -1 if either fails.
std::int64_t checked_peak(std::span<const Buffer> buffers, const PackOptions& options = {}) {
  const Result<Packing> packing = pack(buffers, options);
  if (!packing.ok()) return -1;
  const Status verdict = check(buffers, *packing, options);
  EXPECT_TRUE(verdict.ok()) << verdict.error().message;
  return verdict.ok() ? packing->peak : -1;
}

TEST(Pack, NoBuffersNeedNoMemory) {
  const Result<Packing> packing = pack({});
  ASSERT_TRUE(packing.ok());
  EXPECT_TRUE(packing->offsets.empty());
  EXPECT_EQ(packing->peak, 0);
  EXPECT_EQ(lower_bound({}), 0);
  EXPECT_TRUE(pack({}, {.capacity = 0}).ok());
}

TEST(Pack, OneBufferStartsAtZero) {
  const std::vector<Buffer> buffers = {{5, 9, 100}};
  const Result<Packing> packing = pack(buffers, {.capacity = 100});
  ASSERT_TRUE(packing.ok());
  EXPECT_EQ(packing->offsets, Offsets{0});
  EXPECT_EQ(packing->peak, 100);
}

// Lifetimes are half-open: a buffer that ends at step 3 makes room for one that starts there.
TEST(Pack, AdjacentLifetimesShareMemory) {
  const std::vector<Buffer> buffers = {{0, 3, 10}, {3, 6, 10}, {6, 7, 8}};
  const Result<Packing> packing = pack(buffers);
  ASSERT_TRUE(packing.ok());
  EXPECT_EQ(packing->offsets, (Offsets{0, 0, 0}));
  EXPECT_EQ(packing->peak, 10);
}

TEST(Pack, EmptyBuffersAndLifetimesNeedNoMemory) {
  const std::vector<Buffer> buffers = {{0, 4, 0}, {0, 4, 7}, {2, 2, 1000}};
  EXPECT_EQ(lower_bound(buffers), 7);
  EXPECT_EQ(checked_peak(buffers, {.capacity = 7}), 7);
}

TEST(Pack, StepsMayBeNegativeAndFarApart) {
  const std::vector<Buffer> buffers = {{-1'000'000'000'000, 5, 3}, {0, 1'000'000'000'000, 4}, {-7, -3, 4}};
  EXPECT_EQ(checked_peak(buffers), 7);
}

//   | d |   b   |
//   |   a   |   c   |
//   0   1   2   3   4
TEST(Pack, FindsTheTwoLevelsOfAStaircase) {
  const std::vector<Buffer> buffers = {{0, 2, 4}, {1, 3, 4}, {2, 4, 4}, {0, 1, 4}};
  EXPECT_EQ(lower_bound(buffers), 8);
  EXPECT_EQ(checked_peak(buffers), 8);
}

TEST(Pack, RoundsSizesUpToTheAlignment) {
  const std::vector<Buffer> buffers = {{0, 2, 1}, {0, 2, 257}, {0, 2, 256}};
  const PackOptions options{.alignment = 256};
  EXPECT_EQ(lower_bound(buffers, 256), 1024);
  const Result<Packing> packing = pack(buffers, options);
  ASSERT_TRUE(packing.ok());
  for (const std::int64_t offset : packing->offsets) EXPECT_EQ(offset % 256, 0);
  EXPECT_EQ(packing->peak, 1024);
  EXPECT_TRUE(check(buffers, *packing, options).ok());
  EXPECT_FALSE(pack(buffers, {.capacity = 1023, .alignment = 256}).ok());
}

// Buffers that live throughout go to the bottom, and the rest splits into independent problems
// above them.
TEST(Pack, PutsBuffersThatLiveThroughoutAtTheBottom) {
  const std::vector<Buffer> buffers = {{1, 3, 5}, {0, 10, 100}, {5, 8, 6}, {0, 10, 50}, {2, 4, 1}};
  const Result<Packing> packing = pack(buffers);
  ASSERT_TRUE(packing.ok());
  EXPECT_EQ(packing->offsets[1], 0);
  EXPECT_EQ(packing->offsets[3], 100);
  EXPECT_EQ(packing->offsets[2], 150);
  EXPECT_EQ(packing->peak, 156);
}

// The lowest peak over all orders: each buffer in turn on top of all that it overlaps in time.
std::int64_t best_of_all_orders(std::span<const Buffer> buffers) {
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::int64_t best = kUnlimited;
  do {
    Offsets end(buffers.size());
    std::int64_t peak = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Buffer& buffer = buffers[order[i]];
      for (std::size_t j = 0; j < i; ++j) {
        const Buffer& other = buffers[order[j]];
        if (buffer.born < other.dies && other.born < buffer.dies)
          end[order[i]] = std::max(end[order[i]], end[order[j]]);
      }
      peak = std::max(peak, end[order[i]] += buffer.size);
    }
    best = std::min(best, peak);
  } while (std::ranges::next_permutation(order).found);
  return best;
}

// Small problems that miss the lower bound are rare. In this one, with buffers a to g, at most 5
// bytes are live. In 5 bytes, b would leave a at one end, and c and g would fill the other; f would
// leave d at one end, and c and e would fill the other. So g and e would share a byte, but both are
// live at step 5.
TEST(Pack, DetectsAnUnreachableLowerBound) {
  const std::vector<Buffer> buffers = {{1, 5, 3}, {0, 4, 2}, {4, 7, 1}, {6, 9, 3},
                                       {5, 7, 1}, {8, 9, 2}, {4, 6, 1}};
  EXPECT_EQ(lower_bound(buffers), 5);
  EXPECT_EQ(best_of_all_orders(buffers), 6);
  EXPECT_EQ(checked_peak(buffers), 6);
  const Result<Packing> packing = pack(buffers, {.capacity = 5});
  ASSERT_FALSE(packing.ok());
  EXPECT_EQ(packing.error().message,
            "no packing fits the capacity of 5 bytes: the lowest found needs 6 bytes; most bytes are live at "
            "step 1 "
            "with 5 bytes in 2 buffers, the largest 0 (3 bytes) and 1 (2 bytes)");
  EXPECT_EQ(packing.error().hint, "raise the capacity");
  const Result<Packing> without_search = pack(buffers, {.capacity = 5, .effort = 0});
  ASSERT_FALSE(without_search.ok());
  EXPECT_EQ(without_search.error().message.find("found no packing that fits the capacity of 5 bytes"), 0u);
  EXPECT_EQ(without_search.error().hint, "raise the effort, now 0, or the capacity");
}

// During the search, subproblems are solved and discarded because another one has no solution.
TEST(Pack, BacktracksCleanly) {
  const std::vector<Buffer> buffers = {{8, 10, 6}, {9, 10, 6}, {4, 6, 1}, {3, 6, 6}, {8, 10, 1},
                                       {1, 3, 3},  {4, 7, 5},  {0, 2, 4}, {6, 8, 3}, {4, 7, 1},
                                       {6, 9, 4},  {2, 4, 3},  {0, 3, 6}, {7, 9, 2}};
  EXPECT_EQ(checked_peak(buffers, {.capacity = 14}), 14);
}

TEST(Pack, MatchesExhaustiveSearch) {
  Random random(3);
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<Buffer> buffers;
    for (int i = 0; i < 7; ++i) {
      const std::int64_t born = random.between(0, 8);
      buffers.push_back({born, born + random.between(1, 4), random.between(1, 6)});
    }
    EXPECT_EQ(checked_peak(buffers), best_of_all_orders(buffers)) << "trial " << trial;
  }
}

TEST(Pack, NamesThePeakStepIfNothingFits) {
  const std::vector<Buffer> buffers = {{0, 4, 1024}, {2, 6, 256}, {3, 5, 2048}, {3, 4, 1}, {5, 9, 100}};
  const Result<Packing> packing = pack(buffers, {.capacity = 3000});
  ASSERT_FALSE(packing.ok());
  EXPECT_EQ(packing.error().fault, Fault::world);
  EXPECT_EQ(packing.error().message,
            "buffers alive at once exceed the capacity of 3,000 bytes: step 3 with 3,329 bytes in 4 buffers, "
            "the largest 2 (2,048 bytes), 0 (1,024 bytes) and 1 (256 bytes)");
  EXPECT_EQ(packing.error().hint, "reduce the largest buffers or free them earlier");
}

TEST(Pack, RejectsInvalidProblems) {
  const auto complaint = [](std::vector<Buffer> buffers, PackOptions options = {}) {
    const Result<Packing> packing = pack(buffers, options);
    if (packing.ok()) return std::string();
    EXPECT_EQ(packing.error().fault, Fault::user);
    return packing.error().message;
  };
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  EXPECT_EQ(complaint({{0, 1, 1}, {0, 1, -1}}), "the size of buffer 1 must not be negative, found -1");
  EXPECT_EQ(complaint({{5, 4, 1}}), "buffer 0 must not die before it is born: born at 5, dies at 4");
  EXPECT_EQ(complaint({}, {.alignment = 0}), "the alignment must be at least 1, found 0");
  EXPECT_EQ(complaint({{0, 1, kHuge}, {0, 1, kHuge}}),
            "the sizes of all buffers must add up to less than 2^63 bytes");
}

TEST(Pack, SupportsHugeSizes) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 60;
  const std::vector<Buffer> buffers = {{0, 2, kHuge}, {1, 3, kHuge - 1}, {2, 4, kHuge}};
  EXPECT_EQ(checked_peak(buffers), 2 * kHuge - 1);
}

TEST(Check, ReportsErrors) {
  const std::vector<Buffer> buffers = {{1, 5, 10}, {3, 7, 10}, {5, 6, 10}};
  const auto complaint = [&](Packing packing, PackOptions options = {}) {
    const Status verdict = check(buffers, packing, options);
    return verdict.ok() ? "" : verdict.error().message;
  };
  EXPECT_EQ(complaint({{0, 10, 0}, 20}), "");
  EXPECT_EQ(complaint({{0, 10}, 20}), "a packing needs one offset per buffer: 2 offsets, 3 buffers");
  EXPECT_EQ(complaint({{0, 5, 20}, 30}),
            "two buffers alive at step 3 overlap: 0 at [0, 10) and 1 at [5, 15)");
  EXPECT_EQ(complaint({{0, 10, 15}, 25}),
            "two buffers alive at step 5 overlap: 1 at [10, 20) and 2 at [15, 25)");
  EXPECT_EQ(complaint({{0, 10, 0}, 21}), "the peak must be where the highest buffer ends: 20, found 21");
  EXPECT_EQ(complaint({{0, -10, 0}, 10}), "the offset of buffer 1 must be a multiple of 1, found -10");
  EXPECT_EQ(complaint({{0, 12, 0}, 22}, {.alignment = 8}),
            "the offset of buffer 1 must be a multiple of 8, found 12");
  EXPECT_EQ(complaint({{0, 16, 0}, 32}, {.alignment = 8}), "");
  EXPECT_EQ(complaint({{0, 10, 0}, 20}, {.capacity = 19}),
            "buffer 1 ends above the capacity: 10 bytes at 10, capacity 19");
}

// The example of boxes.h.
TEST(Boxes, LifetimesReduceToRelevantMoments) {
  const std::vector<Buffer> buffers = {{0, 3, 4}, {1, 5, 4}, {4, 6, 4}};
  const Pieces cut = cut_into_pieces(buffers, 1);
  EXPECT_EQ(cut.unit, 4);
  // b is live at both moments, so it goes to the bottom, with a and c separately above it.
  EXPECT_TRUE(cut.pieces.empty());
  EXPECT_EQ(cut.offsets, (Offsets{1, 0, 1}));
}

// As many buffers as the search accepts: it goes as deep as there are buffers.
TEST(Pack, SearchesAThousandBuffers) {
  Random random(5);
  std::vector<Buffer> buffers;
  for (int i = 0; i < 1'000; ++i) {
    const std::int64_t born = random.between(0, 200);
    buffers.push_back({born, born + random.between(2, 40), random.between(1, 1000)});
  }
  const std::int64_t quick = checked_peak(buffers, {.effort = 0});
  ASSERT_GT(quick, lower_bound(buffers));
  EXPECT_LE(checked_peak(buffers, {.effort = 3'000}), quick);
}

// A program of many layers: saved activations nest, temporaries come and go above them, weights
// stay. It must be fast for any number of overlaps.
TEST(Pack, LargeProgramsPackNearTheLowerBound) {
  constexpr std::int64_t kSteps = 8'000;
  Random random(11);
  std::vector<Buffer> buffers;
  for (int i = 0; i < 1'000; ++i) buffers.push_back({0, 2 * kSteps + 100, random.between(1, 64) * 1024});
  for (std::int64_t step = 0; step < kSteps; ++step) {
    const std::int64_t size = random.between(1, 64) * 1024;
    const bool saved = random.below(3) == 0;
    buffers.push_back(
        {step, saved ? 2 * kSteps - step + random.between(0, 9) : step + random.between(1, 9), size});
    buffers.push_back({kSteps + step, kSteps + step + random.between(1, 9), size});
  }
  const std::int64_t bound = lower_bound(buffers, 512);
  const std::int64_t peak = checked_peak(buffers, {.alignment = 512});
  EXPECT_GE(peak, bound);
  EXPECT_LE(peak, bound + bound / 100);
}

struct Instance {
  std::filesystem::path path;
  std::int64_t capacity = 0;
  std::vector<Buffer> buffers;
};

std::int64_t number(std::string_view text) {
  std::int64_t value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// A file "name.capacity.csv" with the columns id, lower, upper and size.
Instance read_instance(const std::filesystem::path& path) {
  Instance instance{path, number(path.stem().extension().string().substr(1)), {}};
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::vector<std::int64_t> fields;
    for (std::size_t comma = line.find(','); comma != std::string::npos; comma = line.find(',', comma + 1))
      fields.push_back(number(std::string_view(line).substr(comma + 1)));
    if (fields.size() == 3) instance.buffers.push_back({fields[0], fields[1], fields[2]});
  }
  return instance;
}

// Moffitt, "MiniMalloc", ASPLOS'23: problems with little or no slack at the capacity in their name.
TEST(Pack, FitsThePublishedHardProblems) {
  const std::filesystem::path folder = std::filesystem::path(WEFT_SOURCE_DIR) / "../shared/corpus/minimalloc";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no problems in " << folder;
  int problems = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".csv") continue;
    const Instance instance = read_instance(entry.path());
    SCOPED_TRACE(instance.path.filename().string());
    ASSERT_FALSE(instance.buffers.empty());
    const PackOptions options{.capacity = instance.capacity};
    const Result<Packing> packing = pack(instance.buffers, options);
    ASSERT_TRUE(packing.ok()) << packing.error().message;
    EXPECT_TRUE(check(instance.buffers, *packing, options).ok());
    ++problems;
  }
  EXPECT_GT(problems, 0);
}

}  // namespace
}  // namespace weft::memory
