#include "weft/communication/comm/group_order.h"

#include <algorithm>
#include <utility>

namespace weft::comm {
namespace {

using transport::Wire;

// Position of each member in ascending order.
std::vector<std::int32_t> places(std::span<const std::int32_t> members) {
  std::vector<std::int32_t> sorted(members.begin(), members.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::int32_t> result;
  for (const std::int32_t member : members) {
    result.push_back(
        static_cast<std::int32_t>(std::lower_bound(sorted.begin(), sorted.end(), member) - sorted.begin()));
  }
  return result;
}

class ReorderedEndpoint final : public transport::Endpoint {
 public:
  ReorderedEndpoint(std::unique_ptr<transport::Endpoint> inner, std::vector<std::int32_t> places)
      : inner_(std::move(inner)), places_(std::move(places)) {}

  std::string_view transport() const override { return inner_->transport(); }
  std::int32_t rank() const override { return rank_at(inner_->rank()); }
  std::int32_t ranks() const override { return inner_->ranks(); }

  Result<transport::Ends> open(std::span<const Wire> wires, const transport::Capacity& capacity) override {
    std::vector<Wire> renamed;
    for (const Wire& wire : wires) {
      renamed.push_back({places_[static_cast<std::size_t>(wire.from)],
                         places_[static_cast<std::size_t>(wire.to)], wire.channel});
    }
    return inner_->open(renamed, capacity);
  }
  bool progress() override { return inner_->progress(); }
  std::uint32_t signal() override { return inner_->signal(); }
  void wait(std::uint32_t seen, std::chrono::nanoseconds patience) override { inner_->wait(seen, patience); }
  void wake() override { inner_->wake(); }
  std::optional<transport::WireFault> fault() override {
    auto fault = inner_->fault();
    if (fault) fault->wire = {rank_at(fault->wire.from), rank_at(fault->wire.to), fault->wire.channel};
    return fault;
  }

 private:
  std::int32_t rank_at(std::int32_t place) const {
    return static_cast<std::int32_t>(std::find(places_.begin(), places_.end(), place) - places_.begin());
  }

  std::unique_ptr<transport::Endpoint> inner_;
  std::vector<std::int32_t> places_;  // by rank of the group
};

}  // namespace

Result<std::vector<transport::Parcel>> exchange(transport::Job& job, std::span<const std::int32_t> members,
                                                transport::Topic topic, transport::Parcel mine) {
  std::vector<std::int32_t> sorted(members.begin(), members.end());
  std::sort(sorted.begin(), sorted.end());
  WEFT_TRY(parcels, job.exchange(sorted, topic, std::move(mine)));
  std::vector<transport::Parcel> ordered;
  for (const std::int32_t place : places(members))
    ordered.push_back(std::move(parcels[static_cast<std::size_t>(place)]));
  return ordered;
}

std::unique_ptr<transport::Endpoint> in_group_order(std::unique_ptr<transport::Endpoint> inner,
                                                    std::span<const std::int32_t> members) {
  if (std::is_sorted(members.begin(), members.end())) return inner;
  return std::make_unique<ReorderedEndpoint>(std::move(inner), places(members));
}

}  // namespace weft::comm
