// weft/app/session/next_token.h -- draws the next token of GENERATE from the logits of a model.
#pragma once
#include <cstdint>
#include <span>

namespace weft::session {

struct Sampling {
  double temperature = 0;  // 0: always the most likely token, the first of ties
  std::int64_t top_k = 0;  // draws from this many most likely tokens; 0: from all
  double top_p = 1;        // draws from the most likely tokens that have this probability together
};

// Draws a token with probability proportional to exp(logit / temperature). `chance` is uniform in
// [0, 1). REQUIRES: logits is not empty.
std::int32_t draw_token(std::span<const double> logits, const Sampling& sampling, double chance);

}  // namespace weft::session
