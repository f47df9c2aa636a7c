#include "weft/collectives/compile/channels.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace weft::collective {
namespace {

// The pairs of ranks that exchange messages, numbered.
class Links {
 public:
  explicit Links(const Instructions& instructions) : of_(static_cast<std::size_t>(instructions.size()), -1) {
    const auto key = [&](const Instruction& it) {
      return static_cast<std::uint64_t>(it.rank) << 32 |
             static_cast<std::uint32_t>(instructions.list[it.taker].rank);
    };
    std::vector<std::uint64_t> keys;
    for (const Instruction& it : instructions.list)
      if (it.taker >= 0) keys.push_back(key(it));
    std::ranges::sort(keys);
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    size_ = keys.size();
    for (std::size_t i = 0; i < of_.size(); ++i)
      if (const Instruction& it = instructions.list[i]; it.taker >= 0)
        of_[i] = static_cast<std::int32_t>(std::ranges::lower_bound(keys, key(it)) - keys.begin());
  }

  std::size_t size() const { return size_; }
  std::int32_t of(std::int32_t sender) const { return of_[sender]; }

 private:
  std::vector<std::int32_t> of_;
  std::size_t size_ = 0;
};

// The link that each link is tied to, per channel.
class Ties {
 public:
  explicit Ties(std::size_t links) : links_(links) {}

  // Ties the links of the path until one conflicts with existing ties; returns how many links fit.
  std::size_t tie(std::int32_t channel, const std::vector<std::int32_t>& way) {
    while (onward_.size() <= static_cast<std::size_t>(channel)) {
      onward_.emplace_back(links_, -1);
      back_.emplace_back(links_, -1);
    }
    std::vector<std::int32_t>&onward = onward_[channel], &back = back_[channel];
    made_.clear();
    for (std::size_t i = 1; i < way.size(); ++i) {
      const std::int32_t in = way[i - 1], out = way[i];
      if (onward[in] == out) continue;
      if (onward[in] >= 0 || back[out] >= 0) return i;
      onward[in] = out;
      back[out] = in;
      made_.push_back(in);
    }
    return way.size();
  }

  // Removes the ties made by the last tie() call.
  void undo(std::int32_t channel) {
    for (const std::int32_t in : made_) {
      back_[channel][onward_[channel][in]] = -1;
      onward_[channel][in] = -1;
    }
    made_.clear();
  }

 private:
  std::size_t links_;
  std::vector<std::vector<std::int32_t>> onward_, back_;
  std::vector<std::int32_t> made_;
};

// Finds the channel that fits the longest prefix of the path, and ties it. Returns its length.
std::size_t settle(Ties& ties, const std::vector<std::int32_t>& way, std::int32_t most,
                   std::int32_t& channel) {
  if (channel >= 0) return ties.tie(channel, way);
  std::size_t longest = 0;
  for (std::int32_t tried = 0; tried < most; ++tried) {
    const std::size_t length = ties.tie(tried, way);
    if (length > longest) {
      longest = length;
      channel = tried;
    }
    if (length == way.size()) return length;
    ties.undo(tried);
  }
  return ties.tie(channel, way);
}

// A message and the fused instructions that forward it: the sending instructions, the links, and
// the requested channel (-1: any).
struct ChannelChain {
  std::vector<std::int32_t> senders, way;
  std::int32_t asked = -1;
};

// The chain that starts at an instruction; false if none does.
bool follow_links(const Instructions& instructions, const Links& links, std::int32_t start,
                  ChannelChain& chain) {
  if (instructions.list[start].op != Op::send) return false;
  chain.senders.clear();
  chain.way.clear();
  chain.asked = -1;
  for (std::int32_t at = start; sends(instructions.list[at].op); at = instructions.list[at].taker) {
    chain.senders.push_back(at);
    chain.way.push_back(links.of(at));
    chain.asked = std::max(chain.asked, instructions.list[at].channel);
  }
  return true;
}

// Ties that conflict with ties at least twice as frequent. A chain that leaves a ring at some rank
// is better cut there than given its own channel throughout.
class RareTies {
 public:
  RareTies(const Instructions& instructions, const Links& links) {
    std::vector<Tie> all;
    ChannelChain chain;
    for (std::int32_t i = 0; i < instructions.size(); ++i)
      if (follow_links(instructions, links, i, chain))
        for (std::size_t k = 1; k < chain.way.size(); ++k)
          all.push_back({chain.asked, chain.way[k - 1], chain.way[k]});
    add(all, [](const Tie& tie) { return std::tuple(tie.asked, tie.in, tie.out); });
    add(all, [](const Tie& tie) { return std::tuple(tie.asked, tie.out, tie.in); });
    std::ranges::sort(rare_);
  }

  bool contains(std::int32_t asked, std::int32_t in, std::int32_t out) const {
    return std::ranges::binary_search(rare_, Tie{asked, in, out});
  }

 private:
  struct Tie {
    std::int32_t asked, in, out;
    friend auto operator<=>(const Tie&, const Tie&) = default;
  };

  // Finds the rare ties among those whose first two key elements are equal.
  template <class Key>
  void add(std::vector<Tie>& all, Key key) {
    std::ranges::sort(all, {}, key);
    std::vector<std::pair<std::size_t, Tie>> group;  // frequency, tie
    for (std::size_t i = 0; i < all.size();) {
      std::size_t end = i;
      while (end < all.size() && all[end] == all[i]) ++end;
      group.emplace_back(end - i, all[i]);
      const bool last = end == all.size() || std::get<0>(key(all[end])) != std::get<0>(key(all[i])) ||
                        std::get<1>(key(all[end])) != std::get<1>(key(all[i]));
      i = end;
      if (!last) continue;
      const std::size_t most = std::ranges::max_element(group)->first;
      for (const auto& [times, tie] : group)
        if (2 * times <= most) rare_.push_back(tie);
      group.clear();
    }
  }

  std::vector<Tie> rare_;
};

}  // namespace

Result<Channels> choose_channels(const Instructions& instructions, std::int32_t most) {
  Channels result;
  std::int32_t moves = 0;
  for (const Instruction& it : instructions.list) {
    moves = std::max({moves, it.sent + 1, it.done + 1});
    if (it.channel >= most)
      return user_error(fmt::format("channel {} does not exist: there are {} channels", it.channel, most),
                        "ask for a lower channel, or for fewer instances");
  }
  result.of_move.assign(static_cast<std::size_t>(moves), -1);
  const Links links(instructions);
  const RareTies rare(instructions, links);
  Ties ties(links.size());
  ChannelChain chain;
  std::vector<std::int32_t> way;
  for (std::int32_t i = 0; i < instructions.size(); ++i) {
    if (!follow_links(instructions, links, i, chain)) continue;
    for (std::size_t begin = 0; begin < chain.way.size();) {
      std::size_t end = begin + 1;
      while (end < chain.way.size() && !rare.contains(chain.asked, chain.way[end - 1], chain.way[end])) ++end;
      way.assign(chain.way.begin() + static_cast<std::ptrdiff_t>(begin),
                 chain.way.begin() + static_cast<std::ptrdiff_t>(end));
      std::int32_t channel = chain.asked;
      end = begin + settle(ties, way, most, channel);
      for (; begin < end; ++begin) result.of_move[instructions.list[chain.senders[begin]].sent] = channel;
      if (begin < chain.way.size()) result.apart.push_back(chain.senders[begin]);
    }
  }
  std::ranges::sort(result.apart);
  return result;
}

}  // namespace weft::collective
