// weft/runtime/run/text_feed.h -- a feed from text: an example is a window of bytes and the next bytes.
//
// Included by the files of run/ only.
#pragma once
#include <memory>
#include <span>

#include "weft/base/result.h"
#include "weft/runtime/run/feed_inputs.h"

namespace weft::run {

Result<std::unique_ptr<Feed>> open_text(const DataFile& file, const plan::Graph& graph,
                                        std::span<const FeedInput> inputs, const FeedOptions& options);

}  // namespace weft::run
