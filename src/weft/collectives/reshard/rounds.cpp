#include "weft/collectives/reshard/rounds.h"

#include <algorithm>
#include <map>
#include <optional>

namespace weft::reshard {
namespace {

constexpr std::size_t kNobody = SIZE_MAX;

// Traffic between `ports` senders and equally many receivers, padded with idle time until each
// sends and receives the same amount. Every moment of the schedule is then a perfect matching of
// the rest.
class Matchings {
 public:
  explicit Matchings(std::span<const Traffic> traffic) {
    std::map<std::int32_t, std::size_t> ports;
    for (const Traffic& pair : traffic) ports.emplace(pair.from, 0), ports.emplace(pair.to, 0);
    std::size_t count = 0;
    for (auto& [host, port] : ports) port = count++;
    std::vector<std::int64_t> sends(count), receives(count);
    leaving_.resize(count);
    for (std::size_t t = 0; t < traffic.size(); ++t) {
      const std::size_t from = ports[traffic[t].from], to = ports[traffic[t].to];
      if (traffic[t].elements > 0) add(from, to, traffic[t].elements, t);
      sends[from] += traffic[t].elements;
      receives[to] += traffic[t].elements;
    }
    for (std::size_t i = 0; i < count; ++i) length_ = std::max({length_, sends[i], receives[i]});
    for (std::size_t from = 0, to = 0; from < count && to < count;) {
      const std::int64_t idle = std::min(length_ - sends[from], length_ - receives[to]);
      if (idle > 0) add(from, to, idle, kNobody);
      sends[from] += idle;
      receives[to] += idle;
      if (sends[from] == length_)
        ++from;
      else
        ++to;
    }
    edge_of_receiver_.assign(count, kNobody);
    edge_of_sender_.assign(count, kNobody);
  }

  std::vector<Stretch> decompose() {
    std::vector<Stretch> done;
    for (std::int64_t now = 0; now < length_;) {
      match_all();
      std::int64_t step = length_ - now;
      for (const std::size_t edge : edge_of_sender_) step = std::min(step, edges_[edge].left);
      for (std::size_t sender = 0; sender < edge_of_sender_.size(); ++sender) {
        Edge& edge = edges_[edge_of_sender_[sender]];
        if (edge.traffic != kNobody) note(done, edge, now, step);
        edge.left -= step;
        edge.sent += step;
        if (edge.left == 0) edge_of_receiver_[edge.to] = edge_of_sender_[sender] = kNobody;
      }
      now += step;
    }
    std::ranges::stable_sort(done, {}, &Stretch::start);
    return done;
  }

 private:
  struct Edge {
    std::size_t from, to;
    std::int64_t left, sent;
    std::size_t traffic;                      // kNobody: idle time
    std::optional<std::size_t> last_stretch;  // extended if it ends now
  };

  void add(std::size_t from, std::size_t to, std::int64_t elements, std::size_t traffic) {
    leaving_[from].push_back(edges_.size());
    edges_.push_back({from, to, elements, 0, traffic, std::nullopt});
  }

  static void note(std::vector<Stretch>& done, Edge& edge, std::int64_t now, std::int64_t step) {
    if (edge.last_stretch) {
      Stretch& last = done[*edge.last_stretch];
      if (last.start + (last.end - last.begin) == now) {
        last.end += step;
        return;
      }
    }
    edge.last_stretch = done.size();
    done.push_back({edge.traffic, edge.sent, edge.sent + step, now});
  }

  // Rematches free senders along alternating paths, breadth first.
  void match_all() {
    for (std::size_t sender = 0; sender < edge_of_sender_.size(); ++sender)
      if (edge_of_sender_[sender] == kNobody) augment(sender);
  }

  void augment(std::size_t start) {
    std::vector<std::size_t> reached_by(edge_of_receiver_.size(), kNobody), front = {start};
    for (std::size_t at = 0; at < front.size(); ++at)
      for (const std::size_t e : leaving_[front[at]]) {
        const Edge& edge = edges_[e];
        if (edge.left == 0 || reached_by[edge.to] != kNobody) continue;
        reached_by[edge.to] = e;
        if (edge_of_receiver_[edge.to] != kNobody) {
          front.push_back(edges_[edge_of_receiver_[edge.to]].from);
          continue;
        }
        for (std::size_t receiver = edge.to;;) {
          const std::size_t taken = reached_by[receiver], sender = edges_[taken].from,
                            given_up = edge_of_sender_[sender];
          edge_of_sender_[sender] = edge_of_receiver_[receiver] = taken;
          if (sender == start) return;
          receiver = edges_[given_up].to;
        }
      }
  }

  std::vector<Edge> edges_;
  std::vector<std::vector<std::size_t>> leaving_;  // edges per sender
  std::vector<std::size_t> edge_of_sender_, edge_of_receiver_;
  std::int64_t length_ = 0;
};

// Round robin: sender i starts with receiver i.
std::vector<Stretch> round_robin(std::span<const Traffic> traffic) {
  std::map<std::int32_t, std::int64_t> senders, receivers;
  for (const Traffic& pair : traffic) senders.emplace(pair.from, 0), receivers.emplace(pair.to, 0);
  for (auto* numbers : {&senders, &receivers})
    for (std::int64_t next = 0; auto& [host, number] : *numbers) number = next++;
  const std::int64_t rounds = std::max(std::ssize(senders), std::ssize(receivers));
  std::vector<Stretch> all;
  for (std::size_t t = 0; t < traffic.size(); ++t)
    if (traffic[t].elements > 0)
      all.push_back({t, 0, traffic[t].elements,
                     (receivers[traffic[t].to] - senders[traffic[t].from] + rounds) % rounds});
  std::ranges::stable_sort(all, {}, &Stretch::start);
  return all;
}

}  // namespace

std::vector<Stretch> make_rounds(std::span<const Traffic> traffic) {
  if (traffic.size() > kMostExactPairs) return round_robin(traffic);
  return Matchings(traffic).decompose();
}

}  // namespace weft::reshard
