// weft/runtime/run/made_up_feed.h -- a feed of made-up numbers that fit the inputs, for measuring.
//
// Included by the files of run/ only.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "weft/runtime/run/feed_inputs.h"

namespace weft::run {

std::unique_ptr<Feed> make_up_feed(std::vector<FeedInput> inputs, std::uint64_t seed);

}  // namespace weft::run
