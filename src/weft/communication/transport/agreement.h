// weft/communication/transport/agreement.h -- consensus on the surviving ranks, tolerating failures
// meanwhile.
//
//   all ranks ── arrived ──▶ leader       the lowest rank not known to have failed
//   leader    ── proposed ─▶ all ranks    when each rank has arrived or failed: those that arrived
//   all ranks ── accepted ─▶ leader
//   leader    ── decided ──▶ all ranks    when each rank has accepted or failed; each receiver forwards it
//
// When the leader fails, the next one takes over: all arrive there, and it re-proposes the list
// proposed to it, if any. A list is decided only when every live rank holds it. So any later leader
// holds it too and decides the same. No two ranks ever get different lists, not even a rank that
// fails right after.
//
// This requires that no live rank is declared failed, or if one is, then by all ranks and
// permanently: see process_job.h. An Agreement is a pure state machine: it is given events and
// returns the messages to send. Not thread-safe; survivor lists are ascending.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::transport {

class Agreement {
 public:
  using Ranks = std::vector<std::int32_t>;

  enum class Word : std::uint8_t { arrived = 1, proposed, accepted, decided };
  struct Message {
    std::int32_t to = 0;
    Word word = Word::arrived;
    Ranks ranks = {};  // proposed or decided
  };

  explicit Agreement(std::int32_t rank) : rank_(rank) {}

  // Starts this rank's participation; `members` are ascending and include it. Earlier messages are
  // kept until then.
  std::vector<Message> begin(std::span<const std::int32_t> members);
  std::vector<Message> hear(std::int32_t from, Word word, Ranks ranks);
  std::vector<Message> note_failure(std::int32_t dead);

  const std::optional<Ranks>& decision() const { return decision_; }
  // The ranks that this rank waits for, as far as it knows. REQUIRES: begun and undecided.
  Ranks awaited() const;

 private:
  bool alive(std::int32_t rank) const { return !dead_.contains(rank); }
  std::int32_t leader() const;
  void advance(std::vector<Message>& out);
  void decide(Ranks ranks, std::vector<Message>& out);  // and forwards the decision, once

  std::int32_t rank_;
  Ranks members_;  // empty: not begun
  std::set<std::int32_t> dead_;
  std::int32_t arrived_at_ = -1;  // the leader that this rank has reported to
  std::set<std::int32_t> arrivals_;
  std::optional<Ranks> held_;  // the list proposed to or by this rank
  bool proposing_ = false;
  std::set<std::int32_t> acceptances_;
  std::optional<Ranks> decision_;
  bool told_ = false;
};

// Serialization; nothing if the bytes are not such a message.
std::string pack(Agreement::Word word, const Agreement::Ranks& ranks);
std::optional<std::pair<Agreement::Word, Agreement::Ranks>> unpack_agreement(std::string_view bytes);

}  // namespace weft::transport
