// weft/runtime/run/table_feed.h -- a feed from tables: .csv, .npy, .npz; one file, or one per input.
//
// Included by the files of run/ only.
#pragma once
#include <memory>
#include <span>

#include "weft/base/result.h"
#include "weft/runtime/run/feed_inputs.h"

namespace weft::run {

// REQUIRES: one file with all inputs, or one file per input.
Result<std::unique_ptr<Feed>> open_table(std::span<const DataFile> files, const plan::Graph& graph,
                                         std::span<const FeedInput> inputs, const FeedOptions& options);

}  // namespace weft::run
