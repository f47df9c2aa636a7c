// weft/device/cpu/lanes_loops.h -- loops over an array by vectors, with a partial vector at the
// end.
//
//   each(n, [&](std::int64_t i, auto lanes) { store(y + i, 2 * load(x + i, lanes, 0), lanes); });
//
//   |--AllLanes--|--AllLanes--|--AllLanes--|-FirstLanes-|      the last, partial step also computes a
//   0            4            8            12    n = 14         whole vector: same values, same bits
#pragma once
#include <cstdint>
#include <utility>

#include "weft/device/cpu/lanes_vector.h"

namespace weft::device::cpu::WEFT_LANES {

template <class Body>
void each(std::int64_t n, Body body) {
  std::int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) body(i, AllLanes{});
  if (i < n) body(i, FirstLanes{static_cast<int>(n - i)});
}

// Element i goes to chain i % kStripe; then chains i and i + 16 are combined, i and i + 8, .. until
// one is left. This order is the same for any vector width and has enough chains to hide the
// latency of additions.
inline constexpr int kStripe = 32;
inline constexpr int kChains = kStripe / kWidth;  // a vector holds kWidth chains

template <std::size_t kHalf = kWidth / 2, class Combine>
float joined_lanes(Vector x, Combine combine) {
  x = combine(x, moved_down<kHalf>(x));
  if constexpr (kHalf > 1)
    return joined_lanes<kHalf / 2>(x, combine);
  else
    return x[0];
}

// Chains have compile-time indices, so that they stay in registers.
template <class Combine, class Element, std::size_t... kChain>
float fold_chains(std::int64_t n, float identity, Combine combine, Element element,
                  std::index_sequence<kChain...>) {
  Vector chains[] = {(static_cast<void>(kChain), splat(identity))...};
  std::int64_t i = 0;
  for (; i + kStripe <= n; i += kStripe)
    ((chains[kChain] = combine(chains[kChain], element(i + kWidth * static_cast<int>(kChain), AllLanes{}))),
     ...);

  const auto last_stripe = [&](Vector& chain) {
    if (i + kWidth <= n)
      chain = combine(chain, element(i, AllLanes{}));
    else if (i < n)
      chain = combine(chain, element(i, FirstLanes{static_cast<int>(n - i)}));
    i += kWidth;
  };
  if (i < n) (last_stripe(chains[kChain]), ...);

  const auto join = [&](std::size_t half) {
    ((kChain < half ? void(chains[kChain] = combine(chains[kChain], chains[(kChain + half) % kChains]))
                    : void()),
     ...);
  };
  for (std::size_t half = kChains / 2; half > 0; half /= 2) join(half);
  return joined_lanes(chains[0], combine);
}

// Combines element(i, lanes) for all i < n. Lanes past the end must hold the identity of `combine`.
template <class Combine, class Element>
float fold(std::int64_t n, float identity, Combine combine, Element element) {
  return fold_chains(n, identity, combine, element, std::make_index_sequence<kChains>());
}

}  // namespace weft::device::cpu::WEFT_LANES
