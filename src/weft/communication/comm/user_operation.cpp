// Reductions with user-defined operations.
#include "weft/communication/comm/user_operation.h"

#include <cstring>

#include <fmt/format.h>

#include "weft/communication/comm/blockwise.h"
#include "weft/device/cpu/reduction.h"

namespace weft::comm {
namespace {

Status check_operation(const Communicator& group, const Call& what, const UserOperation& op) {
  WEFT_TRY_STATUS(check(what, group.size(), group.rank()));
  if (!op.combine) return user_error(fmt::format("{} has no operation", collective::name(what.kind)));
  return check_items(op, what.count);
}

// Reduces this rank's block of all inputs into the first block.
Result<Blockwise> fold_together(Communicator& group, const Call& what, const UserOperation& op) {
  WEFT_TRY_STATUS(check_operation(group, what, op));
  // The count of a reduce_scatter is that of one block, and blocks are not divided among ranks.
  const std::int64_t all = what.kind == Kind::reduce_scatter ? what.count * group.size() : what.count;
  const std::int64_t item = what.kind == Kind::reduce_scatter && what.count > 0 ? what.count : op.item;
  Blockwise blocks(group, all, what.type, item, Purpose::user_operation, ReduceOp::sum);
  WEFT_TRY_STATUS(blocks.collect(what.input));
  const auto own = static_cast<std::int64_t>(blocks.own_bytes() / device::size_of(what.type));
  for (std::int32_t rank = 1; rank < group.size() && own > 0; ++rank)
    op.combine(blocks.block_of(rank), blocks.block_of(0), own / op.item);
  return blocks;
}

}  // namespace

Status check_items(const UserOperation& op, std::int64_t count) {
  if (op.item < 1) return user_error(fmt::format("an item has at least one element: {}", op.item));
  if (count % op.item != 0)
    return user_error(fmt::format("items of {} elements do not divide a count of {}", op.item, count));
  return {};
}

UserOperation operation_of(ReduceOp op, ElementType type) {
  return {.combine = [op, type](const void* right, void* left, std::int64_t items) {
    device::cpu::reduce_pair(type, op, left, left, right, static_cast<std::size_t>(items));
  }};
}

Status Communicator::all_reduce(const void* input, void* output, std::int64_t count, ElementType type,
                                const UserOperation& op) {
  const Call what{.input = input, .output = output, .count = count, .type = type};
  WEFT_TRY(blocks, fold_together(*this, what, op));
  return blocks.share(output);
}

Status Communicator::reduce(const void* input, void* output, std::int64_t count, ElementType type,
                            const UserOperation& op, std::int32_t root) {
  const Call what{
      .kind = Kind::reduce, .input = input, .output = output, .count = count, .type = type, .root = root};
  WEFT_TRY(blocks, fold_together(*this, what, op));
  return blocks.bring_to(root, output);
}

Status Communicator::reduce_scatter(const void* input, void* output, std::int64_t count, ElementType type,
                                    const UserOperation& op) {
  const Call what{
      .kind = Kind::reduce_scatter, .input = input, .output = output, .count = count, .type = type};
  WEFT_TRY(blocks, fold_together(*this, what, op));
  if (blocks.own_bytes() > 0) std::memcpy(output, blocks.block_of(0), blocks.own_bytes());
  return {};
}

}  // namespace weft::comm
