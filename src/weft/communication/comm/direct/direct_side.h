// weft/communication/comm/direct/direct_side.h -- per-rank state of a direct group.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "weft/communication/comm/direct/direct.h"
#include "weft/communication/comm/direct/direct_layout.h"
#include "weft/communication/comm/direct/direct_reach.h"
#include "weft/communication/comm/direct/direct_stream.h"
#include "weft/communication/comm/direct/direct_waiting.h"
#include "weft/communication/transport/doorbell.h"
#include "weft/communication/transport/segment.h"

namespace weft::comm {

struct DirectSide {
  DirectSide(transport::Segment memory, std::int32_t own_rank, std::int32_t all_ranks,
             const DirectTuning& how, bool threads);

  PoisonRecord& poison_record() const { return layout.poison(segment.data()); }
  bool poisoned() const { return poison_record().cause.load(std::memory_order_acquire) != 0; }
  // Has no effect if the group is already poisoned.
  void poison(const DirectGroup::Poison& cause);

  GroupFacts& facts() const { return layout.facts(segment.data()); }
  transport::Doorbells& bells() const { return layout.bells(segment.data()); }
  void ring_others() const { bells().ring_others(ranks, rank); }

  transport::Segment segment;
  std::int32_t rank, ranks;
  bool one_process;
  DirectTuning tuning;
  DirectLayout layout;
  bool oversubscribed;  // more ranks than cores
  DirectReach reach;
  DirectWaiting waiting;
  std::array<DirectStream, kPriorities> streams;
};

}  // namespace weft::comm
