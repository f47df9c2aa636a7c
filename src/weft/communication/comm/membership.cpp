// Per-process state of a job: shared heaps, flight recorders and metrics.
#include <fcntl.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "weft/base/number.h"
#include "weft/communication/comm/group.h"

namespace weft::comm {
namespace {

constexpr std::uint64_t kHeaps = 3;  // topic of the world group

}  // namespace

Status share_heaps(Membership& membership) {
  transport::Job& job = *membership.job;
  std::vector<std::int32_t> everyone;
  std::int32_t here = 0;  // ranks on this machine
  for (std::int32_t rank = 0; rank < job.ranks(); ++rank) {
    everyone.push_back(rank);
    here += job.member(rank).host == job.member(job.rank()).host ? 1 : 0;
  }
  Result<Heap> heap = Heap::create(here);
  if (!heap.ok()) membership.no_heap = heap.error();
  transport::Parcel mine;
  if (heap.ok()) {
    membership.heap = std::move(heap).value();
    const std::uint64_t bytes = membership.heap.segment().size();
    mine = {.bytes = fmt::format("{}", bytes), .descriptor = membership.heap.segment().descriptor()};
  }
  WEFT_TRY(all, job.exchange(everyone, {kWorld, kHeaps}, mine));
  for (const std::int32_t rank : everyone) {
    transport::Parcel& parcel = all[static_cast<std::size_t>(rank)];
    if (rank == job.rank()) parcel.descriptor = fcntl(mine.descriptor, F_DUPFD_CLOEXEC, 0);
    if (parcel.descriptor < 0) continue;
    const auto bytes = read_number<std::size_t>(parcel.bytes, 1);
    if (!bytes) {
      ::close(parcel.descriptor);
      return environment_error(fmt::format("cannot read the heap size of rank {}", rank));
    }
    WEFT_TRY(segment, transport::Segment::map(parcel.descriptor, *bytes));
    membership.heaps.emplace(rank, std::move(segment));
  }
  return {};
}

std::shared_ptr<FlightRecorder> Membership::add_recorder() {
  auto made = std::make_shared<FlightRecorder>();
  const std::lock_guard lock(mutex);
  std::erase_if(recorders, [](const auto& each) { return each.expired(); });
  recorders.push_back(made);
  return made;
}

std::vector<Flight> Membership::read_flights() {
  std::vector<Flight> flights;
  const std::lock_guard lock(mutex);
  for (const auto& each : recorders)
    if (const auto alive = each.lock())
      for (const Flight& flight : alive->read()) flights.push_back(flight);
  std::ranges::stable_sort(flights, {}, &Flight::began_at);
  return flights;
}

std::shared_ptr<Metrics> Membership::add_metrics() {
  auto made = std::make_shared<Metrics>();
  const std::lock_guard lock(mutex);
  std::erase_if(metrics, [&](const auto& each) {
    if (each.use_count() > 1) return false;
    retired += each->read();
    return true;
  });
  if (takes_times) made->take_times();
  metrics.push_back(made);
  return made;
}

RankMetrics Membership::read_metrics() {
  RankMetrics all{.rank = job->rank(), .ranks = job->ranks()};
  for (const transport::Death& death : job->deaths()) all.dead += death.left ? 0 : 1;
  const std::lock_guard lock(mutex);
  takes_times = true;
  all.tallies = retired;
  for (const auto& each : metrics) {
    each->take_times();
    all.tallies += each->read();
  }
  return all;
}

}  // namespace weft::comm
