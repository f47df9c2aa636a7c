// weft/app/session/score_text.h -- a model's score as text and as JSON.
#pragma once
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "weft/app/session/learn.h"
#include "weft/app/session/state.h"

namespace weft::session {

// Prints three digits, enough to see a loss decrease.
std::string print_loss(double loss);

// "tested on the last 360 rows: loss 0.274, accuracy 0.9139"; `where`: "tested on the last".
std::string print_score(const Score& score, std::string_view example, std::string_view where);

nlohmann::ordered_json score_json(const Score& score);

}  // namespace weft::session
