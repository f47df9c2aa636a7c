#include "weft/communication/transport/tcp/endpoint.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>

#include "weft/base/machine.h"
#include "weft/communication/transport/machine_ranks.h"
#include "weft/communication/transport/tcp/connection.h"
#include "weft/communication/transport/tcp/lines.h"
#include "weft/communication/transport/tcp/opening.h"
#include "weft/communication/transport/wire.h"

namespace weft::transport::tcp {

namespace {

constexpr std::int32_t kMostSlots = 4096;
// Per rank that a core has to switch to. Sleeping sooner costs 4 and 8 ranks on 2 cores 5 to 25%:
// the awaited rank is about to send, and a sleeping rank is scheduled last.
constexpr std::chrono::microseconds kYieldsPerRank{250};

Patience patience_of(std::int32_t ranks, std::int32_t cores) {
  Patience patience = patience_for(ranks);
  if (ranks > cores) patience.yields = kYieldsPerRank * ((ranks - 1) / cores + 1);
  return patience;
}

class TcpEndpoint final : public Endpoint {
 public:
  TcpEndpoint(std::shared_ptr<Job> job, std::vector<std::int32_t> members, std::int32_t rank,
              std::uint64_t group, const TcpOptions& options, std::shared_ptr<Lines> lines)
      : job_(std::move(job)),
        members_(std::move(members)),
        rank_(rank),
        group_(group),
        options_(options),
        lines_(std::move(lines)) {}

  std::string_view transport() const override { return "tcp"; }
  std::int32_t rank() const override { return rank_; }
  std::int32_t ranks() const override { return static_cast<std::int32_t>(members_.size()); }

  Result<Ends> open(std::span<const Wire> wires, const Capacity& capacity) override {
    WEFT_TRY_STATUS(check(wires, capacity));
    WEFT_TRY(streams, open_streams(*job_, Opening{.members = members_,
                                                  .rank = rank_,
                                                  .group = group_,
                                                  .number = openings_++,
                                                  .wires = wires,
                                                  .capacity = capacity}));
    Ends ends;
    ends.outgoing.resize(wires.size());
    ends.incoming.resize(wires.size());
    for (std::size_t i = 0; i < wires.size(); ++i) {
      // Authenticated encryption makes a checksum redundant.
      const bool checked =
          !job_->secure() && (options_.always_check || host(wires[i].from) != host(wires[i].to));
      for (const auto* socket : {streams.outgoing[i].socket.get(), streams.incoming[i].socket.get()})
        if (socket != nullptr && options_.buffer_bytes > 0) set_buffers(*socket, options_.buffer_bytes);
      if (wires[i].from == rank_)
        ends.outgoing[i] = lines_->add(
            std::make_unique<Sender>(std::move(streams.outgoing[i]), wires[i], capacity, checked));
      if (wires[i].to == rank_)
        ends.incoming[i] = lines_->add(
            std::make_unique<Receiver>(std::move(streams.incoming[i]), wires[i], capacity, checked));
    }
    return ends;
  }

  bool progress() override { return lines_->progress(); }
  std::uint32_t signal() override { return lines_->signal(); }
  void wait(std::uint32_t seen, std::chrono::nanoseconds patience) override { lines_->wait(seen, patience); }
  void wake() override { lines_->wake(); }
  std::optional<WireFault> fault() override { return lines_->fault(); }

 private:
  const std::string& host(std::int32_t rank) const {
    return job_->member(members_[static_cast<std::size_t>(rank)]).host;
  }

  Status check(std::span<const Wire> wires, const Capacity& capacity) const {
    if (capacity.slots < 1 || capacity.slots > kMostSlots)
      return user_error(fmt::format("a connection has 1 to {} slots: {}", kMostSlots, capacity.slots));
    if (capacity.slot_bytes < 1 || capacity.slot_bytes > kLongestMessage)
      return user_error(fmt::format("a slot has 1 to {} bytes: {}", kLongestMessage, capacity.slot_bytes));
    std::set<Wire> known;
    for (const Wire& wire : wires) {
      if (std::min(wire.from, wire.to) < 0 || std::max(wire.from, wire.to) >= ranks())
        return user_error(fmt::format("a connection is outside the group: from rank {} to rank {} of {}",
                                      wire.from, wire.to, ranks()));
      if (!known.insert(wire).second)
        return user_error(fmt::format("a connection is requested twice: from rank {} to rank {}, channel {}",
                                      wire.from, wire.to, wire.channel));
    }
    return {};
  }

  const std::shared_ptr<Job> job_;
  const std::vector<std::int32_t> members_;
  const std::int32_t rank_;
  const std::uint64_t group_;
  const TcpOptions options_;
  const std::shared_ptr<Lines> lines_;
  std::uint64_t openings_ = 0;
};

}  // namespace

Result<std::unique_ptr<Endpoint>> make_endpoint(std::shared_ptr<Job> job, std::vector<std::int32_t> members,
                                                std::uint64_t group, const TcpOptions& options) {
  const auto self = std::ranges::find(members, job->rank());
  if (self == members.end() || !std::ranges::is_sorted(members) || members.front() < 0 ||
      members.back() >= job->ranks())
    return user_error(fmt::format("expected ascending ranks of the job that include this one: rank {} of {}",
                                  job->rank(), job->ranks()));
  const auto rank = static_cast<std::int32_t>(self - members.begin());
  Socket bell;
  if (options.bell >= 0) {
    bell = Socket(::fcntl(options.bell, F_DUPFD_CLOEXEC, 0));
    if (!bell) return socket_error("cannot make an event descriptor", errno);
  }
  const std::int32_t neighbours = ranks_on_this_machine(*job, members);
  const std::int32_t cores = available_processors();
  const Patience patience = options.patience.value_or(patience_of(neighbours, cores));
  WEFT_TRY(lines, Lines::create(patience, std::move(bell)));
  return std::unique_ptr<Endpoint>(std::make_unique<TcpEndpoint>(std::move(job), std::move(members), rank,
                                                                 group, options, std::move(lines)));
}

}  // namespace weft::transport::tcp
