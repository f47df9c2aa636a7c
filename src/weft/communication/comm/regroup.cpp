// Groups derived from groups: split, shrink and grow. New ranks join by the bootstrap that launched
// ranks use.
#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "weft/base/hash.h"
#include "weft/base/number.h"
#include "weft/communication/comm/group.h"
#include "weft/communication/comm/group_order.h"
#include "weft/communication/comm/rendezvous_point.h"
#include "weft/communication/transport/secret.h"
#include "weft/communication/transport/tcp/socket.h"

namespace weft::comm {
namespace {

enum : std::uint64_t { kSplit = 1 << 20, kShrink = 1 << 21 };  // topics of a group
constexpr std::int32_t kMostGrownRanks = 65536;
constexpr std::chrono::hours kLongestMeeting{7 * 24};

Result<std::unique_ptr<Communicator>> meet(const RendezvousPoint& place, std::int32_t rank,
                                           std::int32_t ranks, const Options& options) {
  if (options.transport == TransportKind::mpi)
    return user_error("MPI cannot add ranks", "use shm, tcp or automatic");
  WEFT_TRY(rendezvous, rendezvous_at(place, rank, ranks));
  WEFT_TRY(job, transport::join(rendezvous));
  return Communicator::create(std::move(job), options);
}

}  // namespace

Result<std::unique_ptr<Communicator>> Communicator::split(std::int32_t colour, std::int32_t key) {
  State& state = *state_;
  if (const auto failure = state.engine->failure()) return *failure;
  const std::uint64_t number = state.splits++;
  WEFT_TRY(all, exchange(*state.membership->job, state.members, {state.id, kSplit + number},
                         {.bytes = fmt::format("{} {}", colour, key)}));
  std::vector<std::tuple<int, std::size_t>> mine;  // key and rank of the ranks with this colour
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const std::string_view said = all[rank].bytes;
    const std::size_t blank = std::min(said.find(' '), said.size());
    const auto its_colour = read_number<std::int32_t>(said.substr(0, blank));
    const auto its_key = read_number<std::int32_t>(said.substr(std::min(blank + 1, said.size())));
    if (!its_colour || !its_key)
      return environment_error(fmt::format("cannot read the colour and key of rank {}", rank),
                               "run the same weft on all hosts");
    if (*its_colour == colour) mine.emplace_back(*its_key, rank);
  }
  if (colour < 0) return std::unique_ptr<Communicator>();
  std::sort(mine.begin(), mine.end());
  std::vector<std::int32_t> members;
  for (const auto& [its_key, rank] : mine) members.push_back(state.members[rank]);
  const std::uint64_t id =
      Hasher().number(state.id).number(number).number(static_cast<std::uint64_t>(colour)).digest().low | 2;
  WEFT_TRY(child, open_group(state.membership, std::move(members), id, state.options));
  return std::make_unique<Communicator>(std::move(child));
}

// A rank may fail while the others open the new group. So they agree once more: either all of them
// have a group then, or all retry without it.
Result<std::unique_ptr<Communicator>> Communicator::shrink(Quorum quorum) {
  State& state = *state_;
  transport::Job& job = *state.membership->job;
  const auto agree = [&](const std::vector<std::int32_t>& members) {
    return job.agree_on_survivors(members, {state.id, kShrink + state.shrinks++});
  };
  std::vector<std::int32_t> everyone = state.members;
  std::sort(everyone.begin(), everyone.end());
  WEFT_TRY(left, agree(everyone));
  for (;;) {
    if (quorum == Quorum::majority) WEFT_TRY_STATUS(check_quorum(everyone, left, job.deaths()));
    std::vector<std::int32_t> alive;  // in the order of the group
    for (const std::int32_t member : state.members)
      if (std::ranges::binary_search(left, member)) alive.push_back(member);
    const std::uint64_t id = Hasher().number(state.id).number(state.shrinks).text("shrink").digest().low | 2;
    Result<std::shared_ptr<State>> child = open_group(state.membership, std::move(alive), id, state.options);
    WEFT_TRY(confirmed, agree(left));
    if (confirmed != left) {
      left = std::move(confirmed);
      continue;
    }
    if (!child.ok()) return std::move(child).error();
    return std::make_unique<Communicator>(std::move(*child));
  }
}

Result<transport::Rendezvous> rendezvous_at(const RendezvousPoint& place, std::int32_t rank,
                                            std::int32_t ranks) {
  if (place.where.empty())
    return user_error("the rendezvous address is empty", "HOST:PORT, or a name on this machine");
  if (place.timeout.count() < 0 || place.timeout > kLongestMeeting)
    return user_error(fmt::format("the rendezvous timeout is at most a week: {} ms", place.timeout.count()));
  transport::Rendezvous rendezvous;
  rendezvous.rank = rank;
  rendezvous.ranks = ranks;
  if (place.where.find(':') != std::string::npos) {
    WEFT_TRY(address, transport::tcp::parse_host_port(place.where));
    rendezvous.address = address.host;
    rendezvous.port = address.port;
  } else {
    rendezvous.name = "grow " + place.where;
  }
  rendezvous.secret = place.secret;
  if (rendezvous.secret.empty()) {
    WEFT_TRY(secret, transport::find_secret());
    rendezvous.secret = std::move(secret);
  }
  if (place.timeout.count() > 0) rendezvous.timeout = place.timeout;
  return rendezvous;
}

Result<std::unique_ptr<Communicator>> Communicator::grow(std::int32_t newcomers,
                                                         const RendezvousPoint& place) {
  if (newcomers < 1) return user_error(fmt::format("expected at least one new rank, found {}", newcomers));
  if (newcomers > kMostGrownRanks - size())
    return user_error(fmt::format("too many new ranks: {}", newcomers));
  if (const auto failure = state_->engine->failure()) return *failure;
  RendezvousPoint at = place;
  if (at.timeout.count() == 0) at.timeout = state_->membership->job->timeout();
  return meet(at, rank(), size() + newcomers, state_->options);
}

Result<std::unique_ptr<Communicator>> join(const RendezvousPoint& place, std::int32_t rank,
                                           std::int32_t ranks, const Options& options) {
  return meet(place, rank, ranks, options);
}

}  // namespace weft::comm
