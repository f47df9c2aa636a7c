// Properties of every packing, for random buffers.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "weft/base/random.h"
#include "weft/program/memory/check.h"
#include "weft/program/memory/pack.h"

namespace weft::memory {
namespace {

// Some are empty or never live.
std::vector<Buffer> random_buffers(Random& random, std::int64_t most) {
  const std::int64_t count = random.between(0, most), steps = random.between(1, 40),
                     largest = random.between(1, 1000);
  std::vector<Buffer> buffers;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t born = random.between(0, steps);
    const std::int64_t life = random.below(4) == 0 ? steps : random.between(0, 8);
    buffers.push_back({born, born + life, random.between(0, largest)});
  }
  return buffers;
}

PackOptions random_options(Random& random) {
  return {.alignment = random.below(2) == 0 ? 1 : std::int64_t{1} << random.below(9),
          .effort = random.between(0, 2000)};
}

RC_GTEST_PROP(MemoryPack, PassesTheCheckAndStaysAboveTheBound, (std::uint64_t seed)) {
  Random random(seed);
  const std::vector<Buffer> buffers = random_buffers(random, 60);
  PackOptions options = random_options(random);
  const Result<Packing> packing = pack(buffers, options);
  RC_ASSERT(packing.ok());
  RC_ASSERT(check(buffers, *packing, options).ok());
  RC_ASSERT(packing->peak >= lower_bound(buffers, options.alignment));

  // The same buffers get the same offsets.
  const Result<Packing> again = pack(buffers, options);
  RC_ASSERT(again->offsets == packing->offsets);
  RC_ASSERT(again->peak == packing->peak);

  // A packing that was found fits its own peak; nothing fits below the bound.
  options.capacity = packing->peak;
  options.effort = 100'000;
  const Result<Packing> fitted = pack(buffers, options);
  RC_ASSERT(fitted.ok());
  RC_ASSERT(check(buffers, *fitted, options).ok());
  options.capacity = lower_bound(buffers, options.alignment) - 1;
  if (options.capacity >= 0) RC_ASSERT(!pack(buffers, options).ok());
}

// More effort never gives a worse result.
RC_GTEST_PROP(MemoryPack, EffortOnlyHelps, (std::uint64_t seed)) {
  Random random(seed);
  const std::vector<Buffer> buffers = random_buffers(random, 30);
  const std::int64_t quick = pack(buffers, {.effort = 0})->peak;
  const std::int64_t thorough = pack(buffers, {.effort = 5'000})->peak;
  RC_ASSERT(thorough <= quick);
}

// A rectangle split from edge to edge repeatedly: the parts fill it without waste.
void cut(Random& random, std::int64_t parts, Buffer whole, std::vector<Buffer>& result) {
  const std::int64_t steps = whole.dies - whole.born;
  const bool across = steps > 1 && (whole.size == 1 || random.below(2) == 0);
  if (parts == 1 || (steps == 1 && whole.size == 1)) {
    result.push_back(whole);
    return;
  }
  Buffer one = whole, other = whole;
  if (across) {
    one.dies = other.born = whole.born + random.between(1, steps - 1);
  } else {
    one.size = random.between(1, whole.size - 1);
    other.size -= one.size;
  }
  const std::int64_t share = random.between(1, parts - 1);
  cut(random, share, one, result);
  cut(random, parts - share, other, result);
}

RC_GTEST_PROP(MemoryPack, ReassemblesASplitRectangle, (std::uint64_t seed)) {
  Random random(seed);
  const Buffer whole{0, random.between(1, 30), random.between(1, 100)};
  std::vector<Buffer> buffers;
  cut(random, random.between(1, 24), whole, buffers);
  for (std::size_t i = buffers.size(); i > 1; --i) std::swap(buffers[i - 1], buffers[random.below(i)]);
  RC_ASSERT(lower_bound(buffers) == whole.size);
  const PackOptions options{.capacity = whole.size};
  const Result<Packing> packing = pack(buffers, options);
  RC_ASSERT(packing.ok());
  RC_ASSERT(check(buffers, *packing, options).ok());
}

// Compares every pair: slow and simple.
bool reference_check(std::span<const Buffer> buffers, const Packing& packing) {
  std::int64_t peak = 0;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& a = buffers[i];
    const std::int64_t at = packing.offsets[i];
    if (at < 0) return false;
    if (!a.takes_place()) continue;
    peak = std::max(peak, at + a.size);
    for (std::size_t j = 0; j < i; ++j) {
      const Buffer& b = buffers[j];
      const bool together = b.takes_place() && a.born < b.dies && b.born < a.dies;
      if (together && at < packing.offsets[j] + b.size && packing.offsets[j] < at + a.size) return false;
    }
  }
  return peak == packing.peak;
}

RC_GTEST_PROP(MemoryCheck, RejectsExactlyWhatIsWrong, (std::uint64_t seed)) {
  Random random(seed);
  const std::vector<Buffer> buffers = random_buffers(random, 20);
  RC_PRE(!buffers.empty());
  Packing packing = *pack(buffers);
  RC_ASSERT(reference_check(buffers, packing));
  std::int64_t& offset = packing.offsets[random.below(buffers.size())];
  offset += random.between(-10, 10) * (random.below(2) == 0 ? 1 : 100);
  if (random.below(8) == 0) ++packing.peak;
  RC_ASSERT(check(buffers, packing).ok() == reference_check(buffers, packing));
}

}  // namespace
}  // namespace weft::memory
