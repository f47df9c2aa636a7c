#include "weft/communication/transport/tcp/opening.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "weft/base/hash.h"
#include "weft/communication/transport/outcome.h"
#include "weft/communication/transport/secret.h"
#include "weft/communication/transport/tcp/wire_handshake.h"

namespace weft::transport::tcp {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kTokenBytes = 16, kDigestDigits = 32;
constexpr std::chrono::milliseconds kDeathsEvery{20};               // poll interval for failures
constexpr std::uint64_t kTcpTopic = std::uint64_t{0x746370} << 40;  // "tcp": unlike other exchanges

// A rank's contribution to the exchange: the digest of what it opens, random bytes for the key, and
// its address or, after '!', why it has none.
struct Notice {
  std::string digest, token, address, trouble;

  std::string print() const { return digest + token + (trouble.empty() ? "@" + address : "!" + trouble); }
};

std::optional<Notice> parse_notice(std::string_view text) {
  constexpr std::size_t kFixed = kDigestDigits + kTokenBytes;
  if (text.size() <= kFixed || (text[kFixed] != '@' && text[kFixed] != '!')) return std::nullopt;
  Notice notice{.digest = std::string(text.substr(0, kDigestDigits)),
                .token = std::string(text.substr(kDigestDigits, kTokenBytes)),
                .address = {},
                .trouble = {}};
  (text[kFixed] == '@' ? notice.address : notice.trouble) = text.substr(kFixed + 1);
  return notice;
}

std::string digest_of(const Opening& opening) {
  Hasher hasher;
  hasher.number(static_cast<std::uint64_t>(opening.capacity.slots))
      .number(static_cast<std::uint64_t>(opening.capacity.slot_bytes));
  for (const Wire& wire : opening.wires)
    for (const std::int32_t field : {wire.from, wire.to, wire.channel})
      hasher.number(static_cast<std::uint64_t>(field));
  return hasher.digest().hex();
}

class Loop {
 public:
  Loop(Job& job, const Opening& opening)
      : job_(job), opening_(opening), deadline_(Clock::now() + job.timeout()) {
    streams_.outgoing.resize(opening.wires.size());
    streams_.incoming.resize(opening.wires.size());
    for (std::size_t i = 0; i < opening.wires.size(); ++i) places_.emplace(opening.wires[i], i);
    for (const auto& [wire, place] : places_)
      if (wire.to == opening.rank && is_called(wire)) awaited_.emplace(wire, place);
  }

  Result<WireStreams> run() {
    Notice mine{
        .digest = digest_of(opening_), .token = random_bytes(kTokenBytes), .address = {}, .trouble = {}};
    const Status listening = listen_here(mine.address);
    if (!listening.ok()) mine.trouble = listening.error().message;
    const auto notices = exchange_notices(mine);
    if (!listening.ok()) return listening.error();
    if (!notices.ok()) return notices.error();
    const Status connected = connect_all_or_none(*notices);
    WEFT_TRY_STATUS(share_outcome(job_, opening_.members, topic(1), connected));
    if (const auto told = this->told()) return environment_error(*told);
    return std::move(streams_);
  }

 private:
  Status listen_here(std::string& address) {
    if (awaited_.empty()) return {};
    std::string host = "127.0.0.1";
    const std::string& job_address = job_.member(job_rank(opening_.rank)).address;
    if (!job_address.empty()) {
      WEFT_TRY(parsed, parse_host_port(job_address));
      host = parsed.host;
    }
    WEFT_TRY(listener, listen(host, 0));
    WEFT_TRY(local, local_address(listener));
    listener_ = std::move(listener);
    address = here_ = local.text();
    return {};
  }

  // The wire of the same channel in the opposite direction, if any.
  std::optional<std::size_t> way_back(const Wire& wire) const {
    const auto found = places_.find({wire.to, wire.from, wire.channel});
    if (wire.from == wire.to || found == places_.end()) return std::nullopt;
    return found->second;
  }
  // Whether this wire's sender connects; otherwise it shares the opposite wire's connection.
  bool is_called(const Wire& wire) const { return wire.from < wire.to || !way_back(wire); }

  Topic topic(std::uint64_t part) const { return {opening_.group, kTcpTopic + 2 * opening_.number + part}; }
  std::int32_t job_rank(std::int32_t rank) const { return opening_.members[static_cast<std::size_t>(rank)]; }

  Result<std::vector<Notice>> exchange_notices(const Notice& mine) {
    WEFT_TRY(parcels, job_.exchange(opening_.members, topic(0), Parcel{mine.print()}));
    std::vector<Notice> notices;
    std::string tokens;
    for (std::size_t rank = 0; rank < parcels.size(); ++rank) {
      auto notice = parse_notice(parcels[rank].bytes);
      if (!notice) return environment_error(fmt::format("cannot read the socket list of rank {}", rank));
      if (!notice->trouble.empty())
        return environment_error(
            fmt::format("rank {} cannot open its connections: {}", rank, notice->trouble));
      if (notice->digest != mine.digest)
        return user_error(
            fmt::format("ranks open different connections: rank {} and rank {}", opening_.rank, rank),
            "every rank of a group must give the same connections and capacity");
      tokens += notice->token;
      notices.push_back(std::move(*notice));
    }
    key_ = job_.key("tcp wires") + tokens;
    accept_queue_.emplace(key_to(opening_.rank, mine.address), traffic());
    if (listener_) accept_queue_->open(std::move(listener_), false);
    return notices;
  }

  Traffic traffic() const { return job_.secure() ? Traffic::sealed : Traffic::plain; }
  // The key of connections to a rank at its published address.
  std::string key_to(std::int32_t rank, std::string_view address) const {
    return bound_to(fmt::format("rank {} at {}", rank, address), key_);
  }

  // A rank that cannot connect reports it at once: the others would wait until the timeout. A rank
  // that receives such a report stops, without an error of its own.
  Status connect_all_or_none(std::span<const Notice> notices) {
    const std::uint64_t group = mix(opening_.group ^ kTcpTopic);
    job_.handle(group, [this](std::int32_t from, std::uint64_t number, std::string_view trouble) {
      if (number == opening_.number) hear(from, trouble);
    });
    const Status connected = connect_all(notices);
    job_.handle(group, nullptr);
    if (connected.ok()) return {};
    for (const std::int32_t member : opening_.members)
      if (member != job_.rank()) job_.send(member, {group, opening_.number}, connected.error().message);
    return connected;
  }

  void hear(std::int32_t from, std::string_view trouble) {
    const auto place = std::ranges::find(opening_.members, from) - opening_.members.begin();
    const std::lock_guard lock(told_mutex_);
    if (!told_) told_ = fmt::format("rank {} cannot open its connections: {}", place, trouble);
  }
  std::optional<std::string> told() {
    const std::lock_guard lock(told_mutex_);
    return told_;
  }

  Status connect_all(std::span<const Notice> notices) {
    for (std::size_t i = 0; i < opening_.wires.size(); ++i) {
      const Wire& wire = opening_.wires[i];
      if (wire.from != opening_.rank || !is_called(wire)) continue;
      const std::string& address = notices[static_cast<std::size_t>(wire.to)].address;
      WEFT_TRY(parsed, parse_host_port(address));
      WEFT_TRY(addresses, resolve(parsed.host, parsed.port));
      callers_.push_back({i, Client(Hello{opening_.group, opening_.number, wire}, addresses.front(),
                                    key_to(wire.to, address), traffic())});
    }
    while ((!callers_.empty() || !awaited_.empty()) && !told()) {
      WEFT_TRY_STATUS(check_time_and_deaths());
      WEFT_TRY_STATUS(step_callers());
      WEFT_TRY_STATUS(let_visitors_in());
      WEFT_TRY_STATUS(step_visitors());
      if (!callers_.empty() || !awaited_.empty()) wait();
    }
    return {};
  }

  Status check_time_and_deaths() {
    for (const Death& death : job_.deaths())
      if (std::ranges::find(opening_.members, death.rank) != opening_.members.end())
        return environment_error(
            fmt::format("rank {} {}: {}", death.rank, death.left ? "left" : "failed", death.how));
    if (Clock::now() < deadline_) return {};
    const double seconds = std::chrono::duration<double>(job_.timeout()).count();
    const std::string hint =
        "check whether that rank is stopped or a firewall drops packets; run weft doctor to see where ranks "
        "are";
    if (!callers_.empty()) {
      const Client& caller = callers_.front().caller;
      return environment_error(fmt::format("rank {} at {} does not answer within {} s", caller.rank(),
                                           caller.address().text(), seconds),
                               hint);
    }
    return environment_error(fmt::format("rank {} did not connect to {} within {} s",
                                         awaited_.begin()->first.from, here_, seconds),
                             hint);
  }

  Status step_callers() {
    for (auto call = callers_.begin(); call != callers_.end();) {
      WEFT_TRY(is_known, call->caller.step());
      if (is_known) {
        Streams streams = call->caller.take_streams();
        if (const auto back = way_back(opening_.wires[call->wire]))
          streams_.incoming[*back] = std::move(streams.in);
        streams_.outgoing[call->wire] = std::move(streams.out);
      }
      call = is_known ? callers_.erase(call) : std::next(call);
    }
    return {};
  }

  Status let_visitors_in() {
    WEFT_TRY(proven, accept_queue_->step());
    for (AcceptQueue::Proven& each : proven) visitors_.emplace_back(std::move(each));
    return {};
  }

  Status step_visitors() {
    for (auto visitor = visitors_.begin(); visitor != visitors_.end();) {
      const auto state = visitor->step();
      if (state == Visitor::State::told) WEFT_TRY_STATUS(seat(*visitor));
      visitor = state == Visitor::State::going ? std::next(visitor) : visitors_.erase(visitor);
    }
    if (awaited_.empty()) {
      visitors_.clear();
      accept_queue_->close();
    }
    return {};
  }

  Status seat(Visitor& visitor) {
    const auto hello = visitor.hello();
    if (!hello || hello->group != opening_.group || hello->opening != opening_.number) return {};
    const auto place = awaited_.find(hello->wire);
    if (place == awaited_.end()) return {};
    Streams streams = visitor.take_streams();
    if (const auto back = way_back(hello->wire)) streams_.outgoing[*back] = std::move(streams.out);
    streams_.incoming[place->second] = std::move(streams.in);
    awaited_.erase(place);
    return {};
  }

  void wait() {
    const auto until = std::min(deadline_, Clock::now() + kDeathsEvery);
    std::vector<pollfd> polled;
    accept_queue_->add_to(polled);
    for (const Call& call : callers_) polled.push_back(call.caller.polled());
    for (const Visitor& visitor : visitors_) polled.push_back(visitor.polled());
    ::poll(polled.data(), polled.size(), milliseconds_until(until));
  }

  struct Call {
    std::size_t wire;
    Client caller;
  };

  Job& job_;
  const Opening& opening_;
  const Clock::time_point deadline_;
  std::string key_;
  Socket listener_;  // until it moves to accept_queue_
  std::string here_;
  std::optional<AcceptQueue> accept_queue_;
  std::map<Wire, std::size_t> places_;   // position of each wire in the list
  std::map<Wire, std::size_t> awaited_;  // incoming wires not connected yet
  std::list<Call> callers_;
  std::list<Visitor> visitors_;
  WireStreams streams_;

  std::mutex told_mutex_;
  std::optional<std::string> told_;  // an error that another rank reported
};

}  // namespace

Result<WireStreams> open_streams(Job& job, const Opening& opening) { return Loop(job, opening).run(); }

}  // namespace weft::transport::tcp
