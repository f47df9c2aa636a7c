// Bucketing for measured models: DAPPLE's profiles, as chains of layers.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "weft/base/file.h"
#include "weft/formats/profile_text.h"
#include "weft/parallel/partition/buckets.h"

namespace weft::formats {
namespace {

namespace fs = std::filesystem;
using partition::Release;
using partition::Tensor;

constexpr Release kReleases[] = {Release::together, Release::early};
// 10 Gbit/s Ethernet, PCIe and NVLink, with the time per call.
constexpr partition::Wire kWires[] = {{50e-6, 1.25e9}, {20e-6, 12e9}, {10e-6, 150e9}};

class ProfileChains : public testing::Test {
 protected:
  struct Chain {
    std::string name;
    std::vector<Tensor> tensors;
  };

  void SetUp() override {
    const fs::path folder = fs::path(WEFT_SOURCE_DIR) / "../shared/corpus/dapple-profiles";
    if (!fs::exists(folder)) GTEST_SKIP() << "no corpus: " << folder;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (!name.ends_with(".txt")) continue;
      const auto text = read_file(entry.path().string(), 1 << 20);
      ASSERT_TRUE(text.ok());
      const auto profile = read_profile(*text);
      ASSERT_TRUE(profile.ok()) << name << ": " << profile.error().message;
      const auto order = partition::topological_order(profile->dag());
      ASSERT_TRUE(order.ok()) << name;
      Chain gradients{name + " gradients", {}}, loading{name + " loading", {}},
          updates{name + " updates", {}};
      for (const std::int32_t n : *order) {
        const partition::ProfileNode& node = profile->nodes[static_cast<std::size_t>(n)];
        const double forward = node.forward / 1e3, backward = node.backward / 1e3;
        gradients.tensors.push_back({.bytes = node.parameters, .made_seconds = backward});
        loading.tensors.push_back({.bytes = node.parameters, .read_seconds = forward});
        updates.tensors.push_back({.bytes = node.parameters,
                                   .made_seconds = backward,
                                   .read_seconds = node.parameters * 5 / 900e9});
      }
      std::ranges::reverse(gradients.tensors);
      std::ranges::reverse(updates.tensors);
      for (Chain* chain : {&gradients, &loading, &updates}) chains_.push_back(std::move(*chain));
    }
    ASSERT_GE(chains_.size(), 21u);
  }

  std::vector<Chain> chains_;
};

// All partitions into buckets, with times for production, transfer and reading. Uses no dynamic
// programming and none of the code under test.
double best_from(std::span<const Tensor> rest, const partition::Wire& wire, Release release, double made,
                 double wire_free, double read) {
  if (rest.empty()) return read;
  double best = std::numeric_limits<double>::infinity();
  double bytes = 0;
  for (std::size_t end = 1; end <= rest.size(); ++end) {
    made += rest[end - 1].made_seconds;
    bytes += rest[end - 1].bytes;
    const double begins = std::max(made, wire_free) + wire.latency,
                 over = begins + bytes / wire.bytes_per_second;
    double done = read, sent = 0;
    for (std::size_t i = 0; i < end; ++i) {
      sent += rest[i].bytes;
      done = std::max(done, release == Release::early ? begins + sent / wire.bytes_per_second : over) +
             rest[i].read_seconds;
    }
    best = std::min(best, best_from(rest.subspan(end), wire, release, made, over, done));
  }
  return best;
}

TEST_F(ProfileChains, FindsTheBestPartition) {
  std::size_t tried = 0;
  for (const Chain& chain : chains_)
    for (std::size_t length = 1; length <= 16; ++length) {
      // Short chains from everywhere; of the long ones, which have up to 2^15 partitions each, only
      // the first.
      const std::size_t stride = length < 7 ? 1 : length < 11 ? 8 : chain.tensors.size();
      for (std::size_t first = 0; first + length <= chain.tensors.size(); first += stride)
        for (const Release release : kReleases) {
          const std::span<const Tensor> part = std::span(chain.tensors).subspan(first, length);
          const partition::Wire& wire = kWires[tried++ % std::size(kWires)];
          const double all = best_from(part, wire, release, 0, 0, 0);
          EXPECT_NEAR(partition::bucketise(part, wire, release).seconds, all, 1e-9 * std::max(all, 1e-3))
              << chain.name << " from " << first << ", " << length;
        }
    }
  EXPECT_GT(tried, 3000u);
}

TEST_F(ProfileChains, NeverWorseThanFixedBuckets) {
  for (const Chain& chain : chains_)
    for (const partition::Wire& wire : kWires)
      for (const Release release : kReleases) {
        const double found = partition::bucketise(chain.tensors, wire, release).seconds;
        for (const double bytes : {0.0, 1e6, partition::kUsualBucketBytes, 1e12})
          EXPECT_LE(found, (1 + 1e-12) * partition::seconds_of(chain.tensors, wire,
                                                               partition::fixed_buckets(chain.tensors, bytes),
                                                               release))
              << chain.name << " against " << bytes;
      }
}

// Layers split into fragments of about 4 MB: variable bucket sizes are never slower than fixed
// ones.
TEST_F(ProfileChains, VariableSizesAreNeverWorseThanFixedOnes) {
  for (Chain& chain : chains_) {
    for (Tensor& tensor : chain.tensors)
      tensor.grains = std::clamp(static_cast<std::int32_t>(tensor.bytes / 4e6), 1, 6);
    const std::int32_t grains = partition::grain_count(chain.tensors);
    const partition::Wire& wire = kWires[0];
    const double variable = partition::bucketise(chain.tensors, wire).seconds;
    for (const std::int32_t together : {1, 2, 5}) {
      std::vector<std::int32_t> fixed;
      for (std::int32_t end = together; end < grains; end += together) fixed.push_back(end);
      fixed.push_back(grains);
      EXPECT_LE(variable, (1 + 1e-12) * partition::seconds_of(chain.tensors, wire, fixed)) << chain.name;
    }
  }
}

// Loaded tensors are read while the rest of their bucket is in transit: for one bucket and for the
// best buckets.
TEST_F(ProfileChains, EarlyReleaseIsStrictlyFaster) {
  for (const Chain& chain : chains_)
    for (const partition::Wire& wire : kWires) {
      const std::vector<std::int32_t> one = {partition::grain_count(chain.tensors)};
      const auto all = [&](Release release) {
        return partition::seconds_of(chain.tensors, wire, one, release);
      };
      const auto best = [&](Release release) {
        return partition::bucketise(chain.tensors, wire, release).seconds;
      };
      EXPECT_LE(best(Release::early), best(Release::together)) << chain.name;
      if (!chain.name.ends_with("loading")) continue;
      EXPECT_LT(all(Release::early), all(Release::together)) << chain.name;
      // If computation alone takes longer than the transfers, the best buckets hide them with
      // either release.
      if (&wire == &kWires[0]) EXPECT_LT(best(Release::early), best(Release::together)) << chain.name;
    }
}

}  // namespace
}  // namespace weft::formats
