#include "weft/communication/transport/mpi/endpoint.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "weft/base/hash.h"
#include "weft/communication/transport/mpi/connection.h"

namespace weft::transport::mpi {
namespace {

using std::chrono::nanoseconds;
using Clock = std::chrono::steady_clock;

// Fruitless waiting before the first nap. A long message progresses only while MPI is tested, and
// that progress is not visible. Naps would slow it down, so wait() stays awake for its transfer
// time at a modest 1 GB/s.
constexpr nanoseconds kAwake{200'000};
constexpr double kModestNanosecondsPerByte = 1;
constexpr nanoseconds kShortestWireNap{50'000};
constexpr nanoseconds kLongestWireNap{1'000'000};

constexpr std::int64_t kMostMpiSlotBytes = 1 << 30;  // MPI counts bytes by an int

// A rank's contribution to the exchange that opens connections.
struct Opening {
  std::uint64_t wires = 0;  // a digest: must be equal on all ranks
  std::int32_t mpi_rank = 0;
  std::int32_t first_tag = 0;  // of the incoming wires, in list order
};

std::uint64_t digest_of_wires(std::span<const Wire> wires, const Capacity& capacity) {
  Hasher hasher;
  for (const Wire& wire : wires) hasher.number(wire.from).number(wire.to).number(wire.channel);
  return hasher.number(capacity.slots).number(capacity.slot_bytes).digest().low;
}

class MpiEndpoint final : public Endpoint {
 public:
  MpiEndpoint(std::shared_ptr<Job> job, std::vector<std::int32_t> members, std::uint64_t group,
              std::shared_ptr<Library> library, std::int32_t rank)
      : job_(std::move(job)), members_(std::move(members)), group_(group), rank_(rank) {
    traffic_->library = std::move(library);
  }

  std::string_view transport() const override { return "mpi"; }
  std::int32_t rank() const override { return rank_; }
  std::int32_t ranks() const override { return static_cast<std::int32_t>(members_.size()); }

  Result<Ends> open(std::span<const Wire> wires, const Capacity& capacity) override {
    WEFT_TRY_STATUS(check(wires, capacity));
    const auto into_me = std::ranges::count(wires, rank_, &Wire::to);
    WEFT_TRY(first_tag, reserve(static_cast<std::int32_t>(into_me)));
    const Opening mine{digest_of_wires(wires, capacity), traffic_->library->rank(), first_tag};
    WEFT_TRY(all, tell(mine));
    const double full = static_cast<double>(capacity.slots) * static_cast<double>(capacity.slot_bytes);
    awake_ =
        std::max(awake_, kAwake + nanoseconds(static_cast<std::int64_t>(full * kModestNanosecondsPerByte)));
    Ends ends;
    std::vector<std::int32_t> next_tag(members_.size());
    for (std::size_t r = 0; r < all.size(); ++r) next_tag[r] = all[r].first_tag;
    for (const Wire& wire : wires) {
      const std::int32_t tag = next_tag[wire.to]++;
      const bool checked = host(wire.from) != host(wire.to);
      ends.outgoing.push_back(
          wire.from != rank_
              ? nullptr
              : make_outgoing(traffic_, {wire, all[wire.to].mpi_rank, tag, checked}, capacity));
      ends.incoming.push_back(
          wire.to != rank_
              ? nullptr
              : make_incoming(traffic_, {wire, all[wire.from].mpi_rank, tag, checked}, capacity));
    }
    return ends;
  }

  bool progress() override {
    const auto lock = traffic_->library->lock();
    bool moved = false;
    for (Watched* watched : traffic_->watched) moved |= watched->look();
    if (moved) fruitless_.store(0, std::memory_order_relaxed);
    return moved;
  }

  std::uint32_t signal() override { return traffic_->signal.load(std::memory_order_acquire); }

  void wait(std::uint32_t seen, nanoseconds patience) override {
    const auto start = Clock::now();
    const auto before = nanoseconds(fruitless_.load(std::memory_order_relaxed));
    for (;;) {
      if (signal() != seen || progress()) return;
      const nanoseconds waited = Clock::now() - start;
      // Consecutive calls count as one long wait.
      fruitless_.store((before + waited).count(), std::memory_order_relaxed);
      if (waited >= patience) return;
      if (before + waited < awake_) {
        std::this_thread::yield();
      } else {
        nap(seen, std::min(std::clamp((before + waited) / 8, kShortestWireNap, kLongestWireNap),
                           patience - waited));
      }
    }
  }

  void wake() override {
    {
      const std::scoped_lock lock(napping_);
      traffic_->signal.fetch_add(1, std::memory_order_release);
    }
    woken_.notify_all();
  }

  std::optional<WireFault> fault() override {
    const auto lock = traffic_->library->lock();
    return traffic_->fault;
  }

 private:
  const std::string& host(std::int32_t rank) const { return job_->member(members_[rank]).host; }

  Status check(std::span<const Wire> wires, const Capacity& capacity) const {
    if (capacity.slots < 1 || capacity.slot_bytes < 0 || capacity.slot_bytes > kMostMpiSlotBytes) {
      return user_error(
          fmt::format("a connection needs at least one slot, of at most {} bytes: {} slots of {} bytes",
                      kMostMpiSlotBytes, capacity.slots, capacity.slot_bytes));
    }
    for (const Wire& wire : wires) {
      if (std::min(wire.from, wire.to) < 0 || std::max(wire.from, wire.to) >= ranks()) {
        return user_error(
            fmt::format("no such connection among {} ranks: from {} to {}", ranks(), wire.from, wire.to));
      }
    }
    return {};
  }

  Result<std::int32_t> reserve(std::int32_t count) {
    const auto lock = traffic_->library->lock();
    return traffic_->library->reserve_tags(count);
  }

  Result<std::vector<Opening>> tell(const Opening& mine) {
    std::string bytes(sizeof mine, '\0');
    std::memcpy(bytes.data(), &mine, sizeof mine);
    WEFT_TRY(parcels, job_->exchange(members_, {group_, kFirstNumber + opens_++}, {std::move(bytes)}));
    std::vector<Opening> all(parcels.size());
    for (std::size_t r = 0; r < all.size(); ++r) {
      if (parcels[r].bytes.size() != sizeof mine) {
        return environment_error(
            fmt::format("cannot read the connections of rank {}: expected {} bytes, found {}", members_[r],
                        sizeof mine, parcels[r].bytes.size()));
      }
      std::memcpy(&all[r], parcels[r].bytes.data(), sizeof mine);
      if (all[r].wires != mine.wires) {
        return user_error(
            fmt::format("rank {} opens different connections from rank {}", members_[r], members_[rank_]));
      }
    }
    return all;
  }

  void nap(std::uint32_t seen, nanoseconds length) {
    std::unique_lock lock(napping_);
    woken_.wait_for(lock, length, [&] { return signal() != seen; });
  }

  // Separates the exchanges of this endpoint from its group's own.
  static constexpr std::uint64_t kFirstNumber = std::uint64_t{0x6d7069} << 32;

  const std::shared_ptr<Job> job_;
  const std::vector<std::int32_t> members_;
  const std::uint64_t group_;
  const std::int32_t rank_;
  std::uint64_t opens_ = 0;
  std::shared_ptr<Traffic> traffic_ = std::make_shared<Traffic>();
  nanoseconds awake_ = kAwake;
  std::atomic<std::int64_t> fruitless_ = 0;  // nanoseconds waited since the last progress
  std::mutex napping_;
  std::condition_variable woken_;
};

}  // namespace

Result<std::unique_ptr<Endpoint>> make_endpoint(std::shared_ptr<Job> job, std::vector<std::int32_t> members,
                                                std::uint64_t group, std::shared_ptr<Library> library) {
  const auto self = std::ranges::find(members, job->rank());
  if (self == members.end()) return user_error(fmt::format("rank {} is not in its own group", job->rank()));
  const auto rank = static_cast<std::int32_t>(self - members.begin());
  return std::unique_ptr<Endpoint>(
      new MpiEndpoint(std::move(job), std::move(members), group, std::move(library), rank));
}

Result<std::unique_ptr<Endpoint>> make_endpoint(std::shared_ptr<Job> job, std::vector<std::int32_t> members,
                                                std::uint64_t group) {
  WEFT_TRY(library, Library::load());
  return make_endpoint(std::move(job), std::move(members), group, std::move(library));
}

}  // namespace weft::transport::mpi
