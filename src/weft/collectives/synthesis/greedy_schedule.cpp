#include "weft/collectives/synthesis/greedy_schedule.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <queue>
#include <tuple>

namespace weft::synthesis {
namespace {

// A set of chunks per device.
class ChunkSets {
 public:
  ChunkSets(std::size_t devices, std::size_t chunks)
      : words_((chunks + 63) / 64), bits_(devices * words_, 0) {}

  void add(std::int32_t device, std::size_t chunk) { word(device, chunk / 64) |= bit(chunk); }
  bool has(std::int32_t device, std::size_t chunk) const {
    return (bits_[at(device) * words_ + chunk / 64] & bit(chunk)) != 0;
  }
  std::size_t words() const { return words_; }
  std::uint64_t word_of(std::int32_t device, std::size_t word) const {
    return bits_[at(device) * words_ + word];
  }

 private:
  static std::uint64_t bit(std::size_t chunk) { return std::uint64_t{1} << chunk % 64; }
  std::uint64_t& word(std::int32_t device, std::size_t index) { return bits_[at(device) * words_ + index]; }

  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

class Turn {
 public:
  Turn(const StepNetwork& network, const StepProblem& problem, const EdgeTimes& times, const GreedyKeys& keys)
      : network_(network),
        times_(times),
        keys_(keys),
        devices_(at(network.devices)),
        has_(devices_, problem.chunks.size()),
        claimed_(devices_, problem.chunks.size()),
        wants_(devices_, problem.chunks.size()),
        lacking_(problem.chunks.size()),
        near_(problem.chunks.size() * devices_, {kNever, -1}),
        coming_(problem.chunks.size() * devices_, {kNever, -1}),
        flying_(problem.chunks.size()),
        holders_(problem.chunks.size(), 1),
        lacks_(devices_, 0),
        limits_(network.limits.size()) {
    for (std::size_t c = 0; c < problem.chunks.size(); ++c) {
      const StepChunk& chunk = problem.chunks[c];
      lacking_[c] = chunk.targets;
      for (const std::int32_t target : chunk.targets) ++lacks_[at(target)], wants_.add(target, c);
      left_ += chunk.targets.size();
      has_.add(chunk.source, c);
      claimed_.add(chunk.source, c);
      hold(c, chunk.source);
    }
    // If every device wants every chunk, no chunk passes through a device that has no use for it.
    all_want_ = std::ranges::all_of(
        problem.chunks, [&](const StepChunk& chunk) { return chunk.targets.size() + 1 == devices_; });
  }

  std::optional<TimeSchedule> run(const StepClock& clock) {
    TimeSchedule made;
    events_.push(0);
    double now = -1;
    while (left_ > 0) {
      if (clock.over()) return std::nullopt;
      if (events_.empty()) {
        // No send was possible although devices wait: from now on accept any path.
        if (hasty_) return std::nullopt;
        hasty_ = true;
        events_.push(now);
        now = -1;
      }
      const double next = events_.top();
      events_.pop();
      if (!is_later(next, now)) continue;
      now = next;
      while (!arrivals_.empty() && !is_later(std::get<0>(arrivals_.top()), now)) {
        const auto [when, device, chunk] = arrivals_.top();
        arrivals_.pop();
        has_.add(device, at(chunk));
        arrive(at(chunk), device);
        hold(at(chunk), device);
      }
      match(now, made);
    }
    std::ranges::sort(made.sends);
    return made;
  }

 private:
  struct Near {
    double seconds;
    std::int32_t holder;
  };
  struct Passing {
    double since = -1, until = 0;
    std::int32_t chunk = -1, from = -1;
  };
  // The best chunk that an edge can send now.
  struct Offer {
    std::int32_t edge = 0, chunk = -1;
    double far = -1, key = 0;
    std::int32_t served = 0, rare = 0, lacks = 0;
  };

  std::size_t slot(std::size_t chunk, std::int32_t device) const { return chunk * devices_ + at(device); }

  void hold(std::size_t chunk, std::int32_t device) {
    for (std::size_t t = 0; t < devices_; ++t) {
      Near& near = near_[chunk * devices_ + t];
      const double seconds = times_.shortest[at(device)][t];
      if (!is_later(seconds, near.seconds)) near = {std::min(seconds, near.seconds), device};
    }
  }

  // The chunk has arrived: it no longer counts as coming through this device.
  void arrive(std::size_t chunk, std::int32_t device) {
    std::vector<TimeSend>& flying = flying_[chunk];
    std::erase_if(flying, [&](const TimeSend& it) { return network_.edges[at(it.edge)].to == device; });
    for (std::size_t t = 0; t < devices_; ++t) {
      Near& coming = coming_[chunk * devices_ + t];
      if (coming.holder != device) continue;
      coming = {kNever, -1};
      for (const TimeSend& it : flying) foresee(chunk, it, t);
    }
  }

  void foresee(std::size_t chunk, const TimeSend& sent, std::size_t target) {
    Near& coming = coming_[chunk * devices_ + target];
    const std::int32_t to = network_.edges[at(sent.edge)].to;
    const double then = sent.arrives + times_.shortest[at(to)][target];
    if (!is_later(then, coming.seconds)) coming = {std::min(then, coming.seconds), to};
  }

  // The earliest arrival at the target if all edges were free from now on, and the last holder
  // before it.
  Near soonest(std::size_t chunk, std::int32_t target, double now) const {
    const Near& near = near_[slot(chunk, target)];
    const Near& coming = coming_[slot(chunk, target)];
    if (!is_later(coming.seconds, now + near.seconds)) return coming;
    return {now + near.seconds, near.holder};
  }

  bool is_free(std::int32_t limit, double now) const { return !is_later(limits_[at(limit)].until, now); }

  // Empty if the edge is busy. Otherwise the chunk that one of its links has just started to carry
  // and can copy (-1: any).
  std::optional<std::int32_t> may_start(std::size_t edge, double now) const {
    std::int32_t only = -1;
    for (const std::int32_t limit : times_.limits[edge]) {
      if (is_free(limit, now)) continue;
      const Passing& passing = limits_[at(limit)];
      if (!network_.limits[at(limit)].copied || passing.since != now ||
          passing.from != network_.edges[edge].from)
        return std::nullopt;
      only = passing.chunk;
    }
    return only;
  }

  // Whether sending the chunk is useful. It is not if the edge's end does not want it or will have
  // it sooner, and no device behind it is served.
  bool judge(std::size_t chunk, std::size_t edge, double now, Offer& offer) const {
    const auto [from, to] = network_.edges[edge];
    const double arrives = now + times_.takes[edge];
    const bool is_wanted = all_want_ || wants_.has(to, chunk);
    offer.far = -1;
    offer.served = 0;
    for (const std::int32_t target : lacking_[chunk]) {
      const double behind = times_.shortest[at(to)][at(target)];
      // A copy in flight that arrives as early already serves the target.
      if (!is_later(coming_[slot(chunk, target)].seconds, arrives + behind)) continue;
      const Near soon = soonest(chunk, target, now);
      // Only the nearest holder forwards it: two would send it twice over the same path, or wait
      // for each other.
      if (is_later(arrives + behind, soon.seconds) || (!is_wanted && soon.holder != from)) continue;
      offer.far = std::max(offer.far, behind);
      ++offer.served;
    }
    if (offer.served > 1 || hasty_) return offer.served > 0 || is_wanted;
    if (offer.served == 1 && is_wanted) {
      // It serves only the edge's end. Waiting is better if it takes less than it saves over a slow
      // link.
      const Near& coming = coming_[slot(chunk, to)];
      if (coming.holder < 0) return true;
      return coming.seconds - arrives >= times_.takes[edge] - times_.shortest[at(coming.holder)][at(to)];
    }
    if (offer.served == 1) return true;
    if (!is_wanted) return false;
    return arrives <= soonest(chunk, to, now).seconds + keys_.patience * times_.takes[edge];
  }

  Offer best_offer(std::size_t edge, double now, std::int32_t only) const {
    const auto [from, to] = network_.edges[edge];
    Offer best{static_cast<std::int32_t>(edge)};
    const auto consider = [&](std::size_t chunk) {
      Offer offer{static_cast<std::int32_t>(edge), static_cast<std::int32_t>(chunk)};
      if (!judge(chunk, edge, now, offer)) return;
      offer.rare = keys_.rare_first ? -holders_[chunk] : 0;
      const float mixed = keys_.chunk[chunk] + keys_.edge[edge];
      offer.key = mixed - static_cast<float>(mixed >= 1);
      if (best.chunk < 0 || std::tie(offer.far, offer.served, offer.rare, offer.key) >
                                std::tie(best.far, best.served, best.rare, best.key))
        best = offer;
    };
    if (only >= 0) {
      if (!claimed_.has(to, at(only))) consider(at(only));
    } else {
      for (std::size_t w = 0; w < has_.words(); ++w)
        for (std::uint64_t word = has_.word_of(from, w) & ~claimed_.word_of(to, w); word != 0;
             word &= word - 1)
          consider(w * 64 + static_cast<std::size_t>(std::countr_zero(word)));
    }
    best.lacks = lacks_[at(to)];
    return best;
  }

  void send(const Offer& offer, double now, TimeSchedule& made) {
    const auto edge = at(offer.edge);
    const std::size_t chunk = at(offer.chunk);
    const auto [from, to] = network_.edges[edge];
    const TimeSend sent{now, now + times_.takes[edge], offer.edge, offer.chunk};
    for (const std::int32_t limit : times_.limits[edge]) {
      limits_[at(limit)] = {now, now + times_.busy[at(limit)], offer.chunk, from};
      events_.push(now + times_.busy[at(limit)]);
    }
    events_.push(sent.arrives);
    arrivals_.emplace(sent.arrives, to, offer.chunk);
    claimed_.add(to, chunk);
    ++holders_[chunk];
    flying_[chunk].push_back(sent);
    for (std::size_t t = 0; t < devices_; ++t) foresee(chunk, sent, t);
    if (std::erase(lacking_[chunk], to) > 0) --left_, --lacks_[at(to)];
    made.finish = std::max(made.finish, sent.arrives);
    made.sends.push_back(sent);
  }

  void match(double now, TimeSchedule& made) {
    while (true) {
      offers_.clear();
      for (std::size_t edge = 0; edge < network_.edges.size(); ++edge) {
        const auto only = may_start(edge, now);
        if (!only) continue;
        const Offer offer = best_offer(edge, now, *only);
        if (offer.chunk >= 0) offers_.push_back(offer);
      }
      if (offers_.empty()) return;
      sort_offers();
      // The first match is always sent. Others may have become useless by then; their edges are
      // offered again.
      for (const std::int32_t index : matched()) {
        const Offer& offer = offers_[at(index)];
        const auto only = may_start(at(offer.edge), now);
        if (only && (*only < 0 || *only == offer.chunk) && still_good(offer, now)) send(offer, now, made);
      }
    }
  }

  void sort_offers() {
    const auto rank = [&](const Offer& it) {
      const double lacks = it.lacks;
      const auto [first, second] = keys_.far_first ? std::pair(it.far, lacks) : std::pair(lacks, it.far);
      return std::tuple(-first, -second, -it.served, keys_.edge[at(it.edge)], it.edge);
    };
    std::ranges::sort(offers_, {}, rank);
  }

  bool still_good(const Offer& offer, double now) const {
    if (claimed_.has(network_.edges[at(offer.edge)].to, at(offer.chunk))) return false;
    Offer fresh;
    return judge(at(offer.chunk), at(offer.edge), now, fresh);
  }

  // Matches offers that share no link at either end, in order of preference, by augmenting paths.
  std::vector<std::int32_t> matched() {
    by_end_.assign(network_.limits.size(), {});
    owner_.assign(network_.limits.size(), -1);
    for (std::size_t i = 0; i < offers_.size(); ++i)
      by_end_[at(times_.first[at(offers_[i].edge)])].push_back(static_cast<std::int32_t>(i));
    seen_start_.assign(network_.limits.size(), 0);
    for (const Offer& offer : offers_) {
      const std::int32_t start = times_.first[at(offer.edge)];
      if (seen_start_[at(start)] != 0) continue;
      seen_start_[at(start)] = 1;
      visited_.assign(network_.limits.size(), 0);
      augment(start);
    }
    std::vector<std::int32_t> chosen;
    for (const std::int32_t owner : owner_)
      if (owner >= 0) chosen.push_back(owner);
    std::ranges::sort(chosen);
    return chosen;
  }

  bool augment(std::int32_t start) {
    for (const std::int32_t index : by_end_[at(start)]) {
      const std::int32_t end = times_.last[at(offers_[at(index)].edge)];
      if (visited_[at(end)] != 0) continue;
      visited_[at(end)] = 1;
      const std::int32_t other = owner_[at(end)];
      if (other >= 0 && !augment(times_.first[at(offers_[at(other)].edge)])) continue;
      owner_[at(end)] = index;
      return true;
    }
    return false;
  }

  const StepNetwork& network_;
  const EdgeTimes& times_;
  const GreedyKeys& keys_;
  std::size_t devices_;
  ChunkSets has_, claimed_, wants_;
  std::vector<std::vector<std::int32_t>> lacking_;  // per chunk: devices that want it, with no copy in flight
  std::vector<Near> near_, coming_;                 // per chunk and target: via a holder; via one in flight
  std::vector<std::vector<TimeSend>> flying_;       // per chunk
  std::vector<std::int32_t> holders_, lacks_;       // per chunk; per device
  std::vector<Passing> limits_;
  std::size_t left_ = 0;
  bool all_want_ = false, hasty_ = false;
  std::priority_queue<double, std::vector<double>, std::greater<>> events_;
  using Arrival = std::tuple<double, std::int32_t, std::int32_t>;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
  std::vector<Offer> offers_;
  std::vector<std::vector<std::int32_t>> by_end_;  // per link: offers that start there
  std::vector<std::int32_t> owner_;                // per link: the matched offer that ends there
  std::vector<char> visited_, seen_start_;
};

}  // namespace

std::optional<TimeSchedule> build_greedy_schedule(const StepNetwork& network, const StepProblem& problem,
                                                  const EdgeTimes& times, const GreedyKeys& keys,
                                                  const StepClock& clock) {
  std::optional<TimeSchedule> made = Turn(network, problem, times, keys).run(clock);
  if (made) drop_idle_sends(network, problem, *made);
  return made;
}

}  // namespace weft::synthesis
