// Throughput of codecs on one thread, compared with memcpy of the same data.
//
//   build/release/bench_codecs
//
// Gigabytes of floats per second of processor time; medians of alternating turns. The goal is half
// of memcpy.
#include <cstring>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "support/measure.h"
#include "weft/base/random.h"
#include "weft/device/codec/codec.h"

namespace {

using namespace weft;
using device::Codec;
using device::CodecKind;

constexpr std::size_t kCount = std::size_t{1} << 22;  // 16 MiB of floats
constexpr int kTurns = 9;

}  // namespace

int main() {
  std::vector<float> values(kCount), back(kCount);
  for (std::size_t i = 0; i < kCount; ++i) values[i] = uniform_at(1, 0, i) - 0.5f;
  fmt::print("{:10} {:>8} {:>12} {:>12} {:>12} {:>10} {:>10}\n", "codec", "bytes", "encode GB/s",
             "decode GB/s", "memcpy GB/s", "encode", "decode");
  const std::pair<std::string_view, Codec> codecs[] = {{"int8", {CodecKind::int8, 256, 0}},
                                                       {"int4", {CodecKind::int4, 256, 0}},
                                                       {"e4m3", {CodecKind::e4m3, 256, 0}},
                                                       {"e5m2", {CodecKind::e5m2, 256, 0}},
                                                       {"bf16", {CodecKind::bf16, 256, 0}},
                                                       {"one_bit", {CodecKind::one_bit, 256, 0}},
                                                       {"top 1 %", {CodecKind::top_k, 256, kCount / 100}}};
  for (const auto& entry : codecs) {
    const Codec& codec = entry.second;  // structured bindings cannot be captured
    std::vector<std::byte> codes(static_cast<std::size_t>(encoded_bytes(codec, kCount)));
    std::vector<double> encoding, decoding, copying;
    for (int turn = 0; turn < kTurns; ++turn) {
      copying.push_back(
          bench::processor_seconds_of([&] { std::memcpy(back.data(), values.data(), 4 * kCount); }));
      encoding.push_back(
          bench::processor_seconds_of([&] { WEFT_CHECK(device::encode(codec, values, codes).ok()); }));
      decoding.push_back(
          bench::processor_seconds_of([&] { WEFT_CHECK(device::decode(codec, codes, back).ok()); }));
    }
    const double gigabytes = 4e-9 * static_cast<double>(kCount), copy = gigabytes / median(copying),
                 encode = gigabytes / median(encoding), decode = gigabytes / median(decoding);
    fmt::print("{:10} {:>7.2f}% {:>12.2f} {:>12.2f} {:>12.2f} {:>9.2f}x {:>9.2f}x\n", entry.first,
               100.0 * static_cast<double>(codes.size()) / (4.0 * kCount), encode, decode, copy,
               encode / copy, decode / copy);
  }
  return 0;
}
