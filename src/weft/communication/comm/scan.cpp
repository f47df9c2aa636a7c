// Inclusive and exclusive scans.
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "weft/communication/comm/blockwise.h"

namespace weft::comm {
namespace {

// Replaces each rank's block by that rank's result.
void scan_blocks(Blockwise& blocks, const UserOperation& op, std::int32_t ranks, bool exclusive) {
  const std::size_t bytes = blocks.own_bytes();
  if (bytes == 0) return;
  std::vector<std::byte> so_far(blocks.block_of(0), blocks.block_of(0) + bytes), before;
  for (std::int32_t rank = 1; rank < ranks; ++rank) {
    if (exclusive) before = so_far;
    op.combine(blocks.block_of(rank), so_far.data(), blocks.own_items());
    std::memcpy(blocks.block_of(rank), exclusive ? before.data() : so_far.data(), bytes);
  }
}

Status run_scan(Communicator& group, const Call& what, const UserOperation& op) {
  const bool exclusive = what.purpose == Purpose::exclusive_scan;
  const bool keeps = exclusive && group.rank() == 0;  // keeps its output
  if (!op.combine) return user_error(fmt::format("{} has no operation", name(what.purpose)));
  Call checked = what;
  if (keeps) checked.output = const_cast<void*>(what.input);
  WEFT_TRY_STATUS(check(checked, group.size(), group.rank()));
  WEFT_TRY_STATUS(check_items(op, what.count));
  Blockwise blocks(group, what.count, what.type, op.item, what.purpose, what.op);
  WEFT_TRY_STATUS(blocks.collect(what.input));
  scan_blocks(blocks, op, group.size(), exclusive);
  if (!keeps) return blocks.return_to(what.output);
  std::vector<std::byte> nowhere(static_cast<std::size_t>(what.count) * device::size_of(what.type));
  return blocks.return_to(nowhere.data());
}

Status run_scan(Communicator& group, const Call& what) {
  if (static_cast<std::size_t>(what.type) >= device::kElementTypes ||
      static_cast<std::size_t>(what.op) >= device::kReduceOps)
    return user_error(fmt::format("{} has an unknown type or operation", name(what.purpose)));
  if (what.op == ReduceOp::avg)
    return user_error(fmt::format("avg is not defined for {}", name(what.purpose)),
                      "use sum, and divide by the number of ranks so far");
  return run_scan(group, what, operation_of(what.op, what.type));
}

Call scan_call(Purpose purpose, const void* input, void* output, std::int64_t count, ElementType type,
               ReduceOp op = ReduceOp::sum) {
  return {.input = input, .output = output, .count = count, .type = type, .op = op, .purpose = purpose};
}

}  // namespace

Status Communicator::scan(const void* input, void* output, std::int64_t count, ElementType type,
                          ReduceOp op) {
  return run_scan(*this, scan_call(Purpose::scan, input, output, count, type, op));
}

Status Communicator::exclusive_scan(const void* input, void* output, std::int64_t count, ElementType type,
                                    ReduceOp op) {
  return run_scan(*this, scan_call(Purpose::exclusive_scan, input, output, count, type, op));
}

Status Communicator::scan(const void* input, void* output, std::int64_t count, ElementType type,
                          const UserOperation& op) {
  return run_scan(*this, scan_call(Purpose::scan, input, output, count, type), op);
}

Status Communicator::exclusive_scan(const void* input, void* output, std::int64_t count, ElementType type,
                                    const UserOperation& op) {
  return run_scan(*this, scan_call(Purpose::exclusive_scan, input, output, count, type), op);
}

}  // namespace weft::comm
