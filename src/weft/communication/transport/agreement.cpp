#include "weft/communication/transport/agreement.h"

#include <algorithm>
#include <utility>

namespace weft::transport {

std::int32_t Agreement::leader() const {
  return *std::ranges::find_if(members_, [this](std::int32_t rank) { return alive(rank); });
}

std::vector<Agreement::Message> Agreement::begin(std::span<const std::int32_t> members) {
  members_.assign(members.begin(), members.end());
  std::vector<Message> out;
  if (decision_) decide(*decision_, out);
  advance(out);
  return out;
}

std::vector<Agreement::Message> Agreement::hear(std::int32_t from, Word word, Ranks ranks) {
  std::vector<Message> out;
  if (!alive(from)) return out;
  switch (word) {
    case Word::arrived:
      if (decision_) {
        out.push_back({from, Word::decided, *decision_});
      } else {
        arrivals_.insert(from);
      }
      break;
    case Word::proposed:
      // Accept only from the leader that this rank takes for alive. Messages of a lower leader all
      // arrived before its failure.
      if (decision_ || members_.empty() || from != leader()) break;
      held_ = std::move(ranks);
      out.push_back({from, Word::accepted});
      break;
    case Word::accepted: acceptances_.insert(from); break;
    case Word::decided: decide(std::move(ranks), out); break;
  }
  advance(out);
  return out;
}

std::vector<Agreement::Message> Agreement::note_failure(std::int32_t dead) {
  std::vector<Message> out;
  if (dead == rank_ || !dead_.insert(dead).second) return out;
  advance(out);
  return out;
}

Agreement::Ranks Agreement::awaited() const {
  Ranks out;
  if (leader() != rank_) {
    out.push_back(leader());
    return out;
  }
  for (const std::int32_t rank : members_) {
    const bool heard = proposing_ ? acceptances_.contains(rank) : arrivals_.contains(rank);
    if (rank != rank_ && alive(rank) && !heard) out.push_back(rank);
  }
  return out;
}

void Agreement::decide(Ranks ranks, std::vector<Message>& out) {
  if (!decision_) decision_ = std::move(ranks);
  if (told_) return;
  for (const std::int32_t rank : members_) {
    if (rank != rank_ && alive(rank)) out.push_back({rank, Word::decided, *decision_});
  }
  told_ = !members_.empty();
}

void Agreement::advance(std::vector<Message>& out) {
  if (decision_ || members_.empty()) return;
  const std::int32_t now = leader();
  if (now != rank_) {
    if (arrived_at_ == now) return;
    arrived_at_ = now;
    out.push_back({now, Word::arrived});
    return;
  }
  if (!awaited().empty()) return;
  if (!proposing_) {
    // The list this rank holds may have been decided by a leader that has failed.
    if (!held_) {
      held_.emplace();
      std::ranges::copy_if(members_, std::back_inserter(*held_),
                           [this](std::int32_t rank) { return alive(rank); });
    }
    proposing_ = true;
    for (const std::int32_t rank : members_) {
      if (rank != rank_ && alive(rank)) out.push_back({rank, Word::proposed, *held_});
    }
    if (!awaited().empty()) return;
  }
  decide(*held_, out);
}

std::string pack(Agreement::Word word, const Agreement::Ranks& ranks) {
  std::string out(1, static_cast<char>(word));
  for (const std::int32_t rank : ranks) {
    for (int i = 0; i < 4; ++i) out += static_cast<char>(static_cast<std::uint32_t>(rank) >> (8 * i));
  }
  return out;
}

std::optional<std::pair<Agreement::Word, Agreement::Ranks>> unpack_agreement(std::string_view bytes) {
  if (bytes.size() % 4 != 1 || bytes[0] < 1 || bytes[0] > 4) return {};
  Agreement::Ranks ranks;
  for (std::size_t at = 1; at < bytes.size(); at += 4) {
    std::uint32_t rank = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      rank |= std::uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
    }
    // Lists are ascending; an invalid rank would be used as an index.
    if (rank > INT32_MAX || (!ranks.empty() && static_cast<std::int32_t>(rank) <= ranks.back())) return {};
    ranks.push_back(static_cast<std::int32_t>(rank));
  }
  return std::pair(static_cast<Agreement::Word>(bytes[0]), std::move(ranks));
}

}  // namespace weft::transport
