// weft/runtime/run/token_feed.h -- a feed from a memory-mapped file of tokens.
//
//   s = 4   tokens    0 1 2 3 4 5 6 7 8 9 ...
//           sample 0  0 1 2 3 4                 inputs 0 1 2 3, targets 1 2 3 4
//           sample 1          4 5 6 7 8         across documents
//
// The samples of an epoch are shuffled by the seed. Included by the files of run/ only.
#pragma once
#include <memory>
#include <span>

#include "weft/base/result.h"
#include "weft/runtime/run/feed.h"
#include "weft/runtime/run/feed_inputs.h"

namespace weft::run {

Result<std::unique_ptr<Feed>> open_tokens(const DataFile& file, const plan::Graph& graph,
                                          std::span<const FeedInput> inputs, const FeedOptions& options);

}  // namespace weft::run
