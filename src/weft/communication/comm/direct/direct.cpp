#include "weft/communication/comm/direct/direct.h"

#include <algorithm>

#include "weft/communication/comm/direct/direct_operation.h"
#include "weft/communication/comm/direct/direct_side.h"

namespace weft::comm {

struct DirectGroup::State {
  explicit State(std::unique_ptr<DirectSide> own)
      : side(std::move(own)), operations(count_operations(side->ranks)) {
    for (std::size_t index = 0; index < operations.size(); ++index) {
      operations[index].side = side.get();
      operations[index].index = index;
      operations[index].sources.resize(static_cast<std::size_t>(side->ranks));
    }
  }

  // The operations available to a call: those of its lane.
  std::span<DirectOperation> lane(const Call& call) {
    const auto priority = static_cast<std::size_t>(call.priority),
               ranks = static_cast<std::size_t>(side->ranks);
    if (call.kind != Kind::send) return std::span(operations).subspan(priority * kLanes, kLanes);
    const bool sends = call.root == side->rank;
    const auto other = static_cast<std::size_t>(sends ? call.peer : call.root);
    return std::span(operations)
        .subspan(kPriorities * kLanes + (priority * 2 + (sends ? 0 : 1)) * ranks + other, 1);
  }
  DirectOperation* free_operation(const Call& call) {
    const std::span<DirectOperation> all = lane(call);
    const auto found = std::ranges::find(all, false, &DirectOperation::active);
    return found == all.end() ? nullptr : &*found;
  }

  std::unique_ptr<DirectSide> side;
  std::vector<DirectOperation> operations;
};

std::string_view name(DirectAlgorithm way) {
  constexpr std::array<std::string_view, kDirectAlgorithms> kNames = {
      "direct mailbox", "direct one-shot", "direct two-shot", "direct in-place", "direct single-copy"};
  return kNames[static_cast<std::size_t>(way)];
}

std::size_t DirectGroup::segment_bytes(std::int32_t ranks, const DirectTuning& tuning) {
  return DirectLayout(ranks, tuning).bytes();
}

std::unique_ptr<DirectGroup> DirectGroup::attach(transport::Segment segment, std::int32_t rank,
                                                 std::int32_t ranks, const DirectTuning& tuning,
                                                 bool one_process) {
  WEFT_CHECK(ranks >= 1 && ranks <= transport::kMostLocalRanks && rank >= 0 && rank < ranks);
  WEFT_CHECK(segment.size() >= segment_bytes(ranks, tuning));
  auto side = std::make_unique<DirectSide>(std::move(segment), rank, ranks, tuning, one_process);
  return std::unique_ptr<DirectGroup>(new DirectGroup(std::make_unique<State>(std::move(side))));
}

DirectGroup::DirectGroup(std::unique_ptr<State> state) : state_(std::move(state)) {}
DirectGroup::~DirectGroup() = default;

std::int32_t DirectGroup::rank() const { return state_->side->rank; }
std::int32_t DirectGroup::ranks() const { return state_->side->ranks; }

const void* DirectGroup::lane(const Call& call) const { return state_->lane(call).data(); }

bool DirectGroup::can_start(const Call& call) const { return state_->free_operation(call) != nullptr; }

Operation* DirectGroup::start(const Call& call, std::uint64_t call_number, const DirectOptions& wish) {
  DirectOperation* const operation = state_->free_operation(call);
  WEFT_CHECK(operation != nullptr && call.kind != Kind::custom);
  operation->start(call, call_number, wish);
  return operation;
}

void DirectGroup::finish(Operation* operation) { static_cast<DirectOperation*>(operation)->finish(); }

std::uint32_t DirectGroup::signal() { return state_->side->waiting.signal(); }

void DirectGroup::wait(std::uint32_t seen, std::chrono::nanoseconds patience) {
  state_->side->waiting.wait(seen, patience);
}

void DirectGroup::wake() { state_->side->waiting.wake(); }

void DirectGroup::add_heap(std::int32_t rank, std::int32_t number, transport::Segment heap) {
  state_->side->reach.add_heap(rank, number, std::move(heap));
}

std::optional<DirectGroup::Place> DirectGroup::find(const void* address, std::size_t bytes) const {
  return state_->side->reach.find(address, bytes);
}

void DirectGroup::poison(std::int32_t rank, std::uint32_t reason) { state_->side->poison({rank, reason}); }

std::optional<DirectGroup::Poison> DirectGroup::poisoned() const {
  const std::uint64_t cause = state_->side->poison_record().cause.load(std::memory_order_acquire);
  if (cause == 0) return std::nullopt;
  return unpack_poison(cause);
}

}  // namespace weft::comm
