// weft/communication/transport/agreement.h -- how ranks agree on who of them goes on, while any of them may die.
//
//   everyone ── arrived ──▶ leader      the lowest rank that is not known to be dead
//   leader   ── proposed ─▶ everyone    when each rank has arrived or is dead: those that arrived
//   everyone ── accepted ─▶ leader
//   leader   ── decided ──▶ everyone    when each rank has accepted or is dead; who hears it tells all others
//
// When the leader dies, the next one takes over: all arrive there, and it proposes again what had been
// proposed to it, if anything. A list is decided only when every living rank holds it. So whoever leads after
// that holds it too and decides the same. No two ranks ever get different lists, not even a rank that dies
// right after.
//
// This needs that no living rank is called dead, or if one is, then by everyone and for good: see
// process_job.h. An Agreement is a value: it is told what happened and says what to send. Not thread-safe;
// survivor lists are ascending.
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

  // This rank takes part; `members` are ascending and have it among them. What comes before is kept till
  // then.
  std::vector<Message> begin(std::span<const std::int32_t> members);
  std::vector<Message> hear(std::int32_t from, Word word, Ranks ranks);
  std::vector<Message> mourn(std::int32_t dead);

  const std::optional<Ranks>& decision() const { return decision_; }
  // Whom this rank waits for, as far as it can tell; REQUIRES: begun and undecided.
  Ranks awaited() const;

 private:
  bool alive(std::int32_t rank) const { return !dead_.contains(rank); }
  std::int32_t leader() const;
  void advance(std::vector<Message>& out);
  void decide(Ranks ranks, std::vector<Message>& out);  // and tells the others, once

  std::int32_t rank_;
  Ranks members_;  // empty: not begun
  std::set<std::int32_t> dead_;
  std::int32_t arrived_at_ = -1;  // the leader that knows of us
  std::set<std::int32_t> arrivals_;
  std::optional<Ranks> held_;  // proposed to us, or by us
  bool proposing_ = false;
  std::set<std::int32_t> acceptances_;
  std::optional<Ranks> decision_;
  bool told_ = false;
};

// As bytes and back; nothing when they are no such message.
std::string pack(Agreement::Word word, const Agreement::Ranks& ranks);
std::optional<std::pair<Agreement::Word, Agreement::Ranks>> unpack_agreement(std::string_view bytes);

}  // namespace weft::transport
