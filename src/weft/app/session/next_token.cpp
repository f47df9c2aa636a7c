#include "weft/app/session/next_token.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace weft::session {
namespace {

// The number of the first weights that have the share of all of them.
std::size_t count_with_share(std::span<const double> weights, double share) {
  const double enough = share * std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i];
    if (sum >= enough) return i + 1;
  }
  return weights.size();
}

}  // namespace

std::int32_t draw_token(std::span<const double> logits, const Sampling& sampling, double chance) {
  const auto best = std::ranges::max_element(logits);
  if (sampling.temperature == 0) return static_cast<std::int32_t>(best - logits.begin());
  std::vector<std::int32_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  if (sampling.top_k > 0 || sampling.top_p < 1)
    std::ranges::stable_sort(tokens, std::ranges::greater(),
                             [&](std::int32_t token) { return logits[static_cast<std::size_t>(token)]; });
  if (sampling.top_k > 0 && static_cast<std::size_t>(sampling.top_k) < tokens.size())
    tokens.resize(static_cast<std::size_t>(sampling.top_k));
  std::vector<double> weights;
  weights.reserve(tokens.size());
  for (const std::int32_t token : tokens)
    weights.push_back(std::exp((logits[static_cast<std::size_t>(token)] - *best) / sampling.temperature));
  if (sampling.top_p < 1) weights.resize(count_with_share(weights, sampling.top_p));
  double left = chance * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) return tokens[i];
  }
  return static_cast<std::int32_t>(best - logits.begin());
}

}  // namespace weft::session
