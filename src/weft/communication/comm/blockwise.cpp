#include "weft/communication/comm/blockwise.h"

#include <algorithm>

namespace weft::comm {

Blockwise::Blockwise(Communicator& group, std::int64_t count, ElementType type, std::int64_t item,
                     Purpose purpose, ReduceOp op)
    : group_(group), type_(type), item_(item), purpose_(purpose), op_(op), element_(device::size_of(type)) {
  for (std::int32_t rank = 0; rank < group.size(); ++rank)
    blocks_.push_back(collective::chunk_extent(count / item, group.size(), rank).size * item);
  even_ = std::ranges::all_of(blocks_, [&](std::int64_t block) { return block == blocks_.front(); });
  own_ = blocks_[static_cast<std::size_t>(group.rank())];
  scratch_.resize(own_bytes() * blocks_.size());
}

Call Blockwise::call(Kind kind, const void* input, void* output) const {
  return {.kind = kind,
          .input = input,
          .output = output,
          .count = even_ ? blocks_.front() : 0,
          .type = type_,
          .op = op_,
          .counts = even_ || kind == Kind::all_to_all ? std::span<const std::int64_t>() : blocks_,
          .purpose = purpose_};
}

Status Blockwise::collect(const void* input) {
  Call collecting = call(Kind::all_to_all, input, scratch_.data());
  if (!even_) {
    pairs_.clear();
    for (std::size_t from = 0; from < blocks_.size(); ++from)
      pairs_.insert(pairs_.end(), blocks_.begin(), blocks_.end());
    collecting.counts = pairs_;
  }
  return group_.run(collecting);
}

Status Blockwise::return_to(void* output) {
  Call returning = call(Kind::all_to_all, scratch_.data(), output);
  if (!even_) {
    pairs_.clear();
    for (const std::int64_t block : blocks_) pairs_.insert(pairs_.end(), blocks_.size(), block);
    returning.counts = pairs_;
  }
  return group_.run(returning);
}

Status Blockwise::share(void* output) { return group_.run(call(Kind::all_gather, scratch_.data(), output)); }

Status Blockwise::bring_to(std::int32_t root, void* output) {
  Call bringing = call(Kind::gather, scratch_.data(), output);
  bringing.root = root;
  return group_.run(bringing);
}

}  // namespace weft::comm
