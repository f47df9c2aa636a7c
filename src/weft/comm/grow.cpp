// A group takes in newcomers: all of them meet as ranks that a launcher started do.
#include <fmt/format.h>

#include "weft/comm/group.h"
#include "weft/comm/meeting_place.h"
#include "weft/transport/secret.h"
#include "weft/transport/tcp/socket.h"

namespace weft::comm {
namespace {

Result<std::unique_ptr<Communicator>> meet(const MeetingPlace& place, std::int32_t rank, std::int32_t ranks,
                                           const Options& options) {
  if (options.transport == TransportKind::mpi)
    return user_error("MPI takes in no newcomers", "shm or tcp; automatic takes what suits");
  WEFT_TRY(rendezvous, rendezvous_at(place, rank, ranks));
  WEFT_TRY(job, transport::join(rendezvous));
  return Communicator::create(std::move(job), options);
}

}  // namespace

Result<transport::Rendezvous> rendezvous_at(const MeetingPlace& place, std::int32_t rank,
                                            std::int32_t ranks) {
  if (place.where.empty())
    return user_error("no place to meet at is given", "HOST:PORT, or a name on this machine");
  if (place.timeout.count() < 0)
    return user_error(fmt::format("timeout is negative: {} ms", place.timeout.count()));
  transport::Rendezvous rendezvous{.rank = rank, .ranks = ranks};
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

Result<std::unique_ptr<Communicator>> Communicator::grow(std::int32_t newcomers, const MeetingPlace& place) {
  if (newcomers < 1) return user_error(fmt::format("a group grows by one rank at least: {}", newcomers));
  if (newcomers > 65536 - size()) return user_error(fmt::format("too many newcomers: {}", newcomers));
  if (const auto failure = state_->engine->failure()) return *failure;
  MeetingPlace at = place;
  if (at.timeout.count() == 0) at.timeout = state_->membership->job->timeout();
  return meet(at, rank(), size() + newcomers, state_->options);
}

Result<std::unique_ptr<Communicator>> join(const MeetingPlace& place, std::int32_t rank, std::int32_t ranks,
                                           const Options& options) {
  return meet(place, rank, ranks, options);
}

}  // namespace weft::comm
