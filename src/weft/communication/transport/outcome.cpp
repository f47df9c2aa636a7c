#include "weft/communication/transport/outcome.h"

#include <fmt/format.h>

namespace weft::transport {

Status share_outcome(Job& job, std::span<const std::int32_t> members, Topic topic, const Status& mine) {
  // The others are informed even if this rank already knows that it has failed.
  const auto parcels = job.exchange(members, topic, Parcel{mine.ok() ? "" : mine.error().message});
  if (!mine.ok()) return mine;
  if (!parcels.ok()) return parcels.error();
  for (std::size_t rank = 0; rank < parcels->size(); ++rank)
    if (const std::string& trouble = (*parcels)[rank].bytes; !trouble.empty())
      return environment_error(fmt::format("rank {} cannot open its connections: {}", rank, trouble));
  return {};
}

}  // namespace weft::transport
