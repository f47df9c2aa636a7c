// Codecs: the error of each is within its bound, and how error feedback and hops affect it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "weft/base/random.h"
#include "weft/device/codec/codec.h"

namespace weft::device {
namespace {

std::vector<float> random_numbers(std::uint64_t seed, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(normal_at(seed, 0, i) * std::pow(10.0, 3 * normal_at(seed, 1, i / 64)));
  return values;
}

std::vector<float> there_and_back(const Codec& codec, const std::vector<float>& values) {
  std::vector<std::byte> codes(
      static_cast<std::size_t>(encoded_bytes(codec, static_cast<std::int64_t>(values.size()))));
  EXPECT_TRUE(encode(codec, values, codes).ok());
  std::vector<float> back(values.size());
  EXPECT_TRUE(decode(codec, codes, back).ok());
  return back;
}

TEST(Codec, ErrorIsWithinItsBound) {
  for (const CodecKind kind :
       {CodecKind::int8, CodecKind::int4, CodecKind::e4m3, CodecKind::e5m2, CodecKind::bf16})
    for (const std::int64_t block : {8, 64, 256})
      for (const std::size_t count : {1u, 7u, 256u, 1000u}) {
        const Codec codec{kind, block, 0};
        const std::vector<float> values = random_numbers(count, count), back = there_and_back(codec, values);
        for (std::size_t i = 0; i < count; ++i) {
          const std::size_t begin = i / static_cast<std::size_t>(block) * static_cast<std::size_t>(block);
          double largest = 0;
          for (std::size_t j = begin; j < std::min(begin + static_cast<std::size_t>(block), count); ++j)
            largest = std::max(largest, std::abs(static_cast<double>(values[j])));
          EXPECT_LE(std::abs(static_cast<double>(values[i]) - back[i]),
                    error_bound(codec, values[i], largest) * (1 + 1e-5) +
                        1e-6 * largest * (kind == CodecKind::int8))
              << "codec " << static_cast<int>(kind) << " of " << values[i] << " in a block up to " << largest;
        }
      }
}

TEST(Codec, UsesTheStatedBytes) {
  EXPECT_EQ(encoded_bytes({CodecKind::int8, 256, 0}, 1000), 1000 + 4 * 4);
  EXPECT_EQ(encoded_bytes({CodecKind::int4, 256, 0}, 1001), 501 + 4 * 4);
  EXPECT_EQ(encoded_bytes({CodecKind::bf16, 256, 0}, 1000), 2000);
  EXPECT_EQ(encoded_bytes({CodecKind::one_bit, 256, 0}, 1000), 125 + 4 * 4);
  EXPECT_EQ(encoded_bytes({CodecKind::top_k, 256, 10}, 1000), 80);
}

TEST(Codec, KeepsExactValues) {
  // Encoding is idempotent: a second pass loses nothing more.
  for (const CodecKind kind : {CodecKind::int8, CodecKind::int4, CodecKind::bf16}) {
    const std::vector<float> once = there_and_back({kind, 64, 0}, random_numbers(3, 640));
    const std::vector<float> twice = there_and_back({kind, 64, 0}, once);
    for (std::size_t i = 0; i < once.size(); ++i) EXPECT_NEAR(twice[i], once[i], 1e-5 * std::abs(once[i]));
  }
  const std::vector<float> zeros(100);
  EXPECT_EQ(there_and_back({CodecKind::int8, 64, 0}, zeros), zeros);
  EXPECT_EQ(there_and_back({CodecKind::e4m3, 64, 0}, zeros), zeros);
}

TEST(Codec, PreservesNaN) {
  for (const CodecKind kind : {CodecKind::int8, CodecKind::int4, CodecKind::e4m3, CodecKind::e5m2,
                               CodecKind::bf16, CodecKind::one_bit, CodecKind::top_k, CodecKind::low_rank}) {
    std::vector<float> values(64, 1.0f);
    values[5] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> back = there_and_back({kind, 64, 4}, values);
    EXPECT_TRUE(std::isnan(back[5])) << static_cast<int>(kind);
  }
}

TEST(Codec, ErrorFeedbackLosesNothingOverTime) {
  const std::vector<float> gradient = random_numbers(9, 512);
  double largest = 0;
  for (const float value : gradient) largest = std::max(largest, std::abs(static_cast<double>(value)));
  for (const Codec codec : {Codec{CodecKind::one_bit, 64, 0}, Codec{CodecKind::top_k, 64, 64},
                            Codec{CodecKind::low_rank, 32, 2}}) {
    std::vector<float> carried(gradient.size());
    std::vector<double> sum(gradient.size());
    std::vector<std::byte> codes(static_cast<std::size_t>(encoded_bytes(codec, 512)));
    constexpr int kSteps = 400;
    for (int step = 0; step < kSteps; ++step) {
      ASSERT_TRUE(encode(codec, gradient, codes, carried).ok());
      std::vector<float> arrived(gradient.size());
      ASSERT_TRUE(decode(codec, codes, arrived).ok());
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += arrived[i];
    }
    // The received sum plus the carried error equals what was sent.
    for (std::size_t i = 0; i < sum.size(); ++i)
      EXPECT_NEAR(sum[i] + carried[i], kSteps * static_cast<double>(gradient[i]), 1e-3 * largest * kSteps);
  }
}

// A ring decodes, adds and encodes at each of k hops. Two hops (all-to-all, then all-gather) encode
// twice for any number of ranks.
TEST(Codec, RequantizationErrorGrowsOverARingButNotOverTwoHops) {
  const Codec codec{CodecKind::int8, 256, 0};
  const auto errors = [&](std::size_t ranks) {
    std::vector<double> exact(2048);
    std::vector<float> ring(2048);
    std::vector<double> direct(2048);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      std::vector<float> own(2048);
      for (std::size_t i = 0; i < own.size(); ++i) own[i] = static_cast<float>(normal_at(rank, 7, i));
      const std::vector<float> passed = rank == 0 ? ring : there_and_back(codec, ring);
      const std::vector<float> sent = there_and_back(codec, own);
      for (std::size_t i = 0; i < own.size(); ++i) {
        exact[i] += own[i];
        ring[i] = passed[i] + own[i];
        direct[i] += sent[i];
      }
    }
    std::vector<float> summed(direct.begin(), direct.end());
    const std::vector<float> two_hops = there_and_back(codec, summed), around = there_and_back(codec, ring);
    double norm = 0, ring_error = 0, direct_error = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      norm += exact[i] * exact[i];
      ring_error += (around[i] - exact[i]) * (around[i] - exact[i]);
      direct_error += (two_hops[i] - exact[i]) * (two_hops[i] - exact[i]);
    }
    return std::pair(std::sqrt(ring_error / norm), std::sqrt(direct_error / norm));
  };
  const auto [ring4, direct4] = errors(4);
  const auto [ring64, direct64] = errors(64);
  EXPECT_GT(ring64, 2 * ring4);
  EXPECT_LT(direct64, 1.3 * direct4);
}

// The definition used by plans: in double, one number at a time.
TEST(Codec, KernelsMatchTheDefinition) {
  for (const CodecKind kind : {CodecKind::int8, CodecKind::int4, CodecKind::e4m3, CodecKind::e5m2,
                               CodecKind::bf16, CodecKind::one_bit, CodecKind::top_k, CodecKind::low_rank})
    for (const std::size_t count : {1u, 7u, 64u, 203u, 1000u}) {
      const Codec codec{kind, 64,
                        kind == CodecKind::top_k      ? static_cast<std::int64_t>(count + 9) / 10
                        : kind == CodecKind::low_rank ? std::int64_t{1}
                                                      : std::int64_t{0}};
      std::vector<float> values = random_numbers(count + 1, count);
      if (count == 203) values[70] = std::numeric_limits<float>::infinity();
      if (count == 64) std::ranges::fill(values, 0.0f);
      const auto used = static_cast<std::size_t>(encoded_bytes(codec, static_cast<std::int64_t>(count)));
      std::vector<std::byte> codes(used);
      ASSERT_TRUE(encode(codec, values, codes).ok());
      const std::vector<double> numbers(values.begin(), values.end());
      std::vector<std::int32_t> words(
          static_cast<std::size_t>(ops::encoded_words(codec, static_cast<std::int64_t>(count))));
      ops::encode_row(codec, numbers, words);
      std::vector<double> back(count);
      ops::decode_row(codec, words, back);
      std::vector<float> arrived(count);
      ASSERT_TRUE(decode(codec, codes, arrived).ok());
      for (std::size_t i = 0; i < count; ++i)
        EXPECT_TRUE(static_cast<double>(arrived[i]) == back[i] ||
                    (std::isnan(arrived[i]) && std::isnan(back[i])))
            << ops::name(kind) << " of " << values[i] << ": " << arrived[i] << " and " << back[i];
      if (count != 203) {
        EXPECT_EQ(std::memcmp(words.data(), codes.data(), used), 0) << ops::name(kind) << " " << count;
      }
    }
}

TEST(Codec, RejectsWrongLengths) {
  std::vector<float> values(16), carried(3);
  std::vector<std::byte> codes(20);
  EXPECT_TRUE(encode({CodecKind::int8, 256, 0}, values, codes).ok());
  EXPECT_EQ(encode({CodecKind::int8, 256, 0}, values, std::span(codes).first(19)).error().message,
            "16 numbers take 20 bytes, found 19");
  EXPECT_EQ(encode({CodecKind::int8, 12, 0}, values, codes).error().message,
            "a block must be a multiple of 8 numbers, found 12");
  EXPECT_EQ(encode({CodecKind::top_k, 256, 17}, values, codes).error().message,
            "expected 0 to 16 numbers to be kept, found 17");
  EXPECT_EQ(encode({CodecKind::int8, 256, 0}, values, codes, carried).error().message,
            "expected 16 numbers carried over, found 3");
  std::vector<std::byte> hostile(8, std::byte{0xff});
  EXPECT_EQ(decode({CodecKind::top_k, 256, 1}, hostile, values).error().message,
            "expected a position below 16, found 4294967295");
}

}  // namespace
}  // namespace weft::device
