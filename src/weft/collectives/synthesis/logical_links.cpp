#include "weft/collectives/synthesis/logical_links.h"

#include <algorithm>
#include <numeric>

namespace weft::synthesis {
namespace {

class SwitchRemoval {
 public:
  SwitchRemoval(const Wires& wires, const std::vector<std::int32_t>& roots, Ratio rate,
                const Deadline& deadline)
      : gpus_(wires.gpus),
        nodes_(wires.nodes),
        deadline_(deadline),
        out_(size(wires.nodes)),
        in_(size(wires.nodes)) {
    for (const Wire& wire : wires.wires) {
      if (wire.from == wire.to) continue;
      const std::int32_t a = arc(wire.from, wire.to);
      arcs_[size(a)].capacity += wire.capacity * rate.under;
      std::vector<std::int32_t> links;
      if (wire.link >= 0) links.push_back(wire.link);
      arcs_[size(a)].lanes.push_back({wire.capacity * rate.under, std::move(links)});
    }
    if (nodes_ > gpus_) find_flows(roots, rate);
  }

  LogicalLinks run(Amount scale) {
    LogicalLinks made;
    made.gpus = gpus_;
    made.scale = scale;
    made.whole = complete_;
    for (int round = 0; round < 4 && !balance(); ++round) {
    }
    std::vector<std::int32_t> order;
    for (std::int32_t w = gpus_; w < nodes_; ++w) order.push_back(w);
    std::ranges::stable_sort(order, {}, [&](std::int32_t w) { return in_[size(w)].size(); });
    for (const std::int32_t w : order) made.whole = remove(w) && made.whole;
    for (Arc& it : arcs_)
      if (it.capacity > 0 && it.from < gpus_ && it.to < gpus_)
        made.links.push_back({it.from, it.to, it.capacity, std::move(it.lanes)});
    std::ranges::sort(made.links, {}, [](const LogicalLink& link) { return std::pair(link.from, link.to); });
    return made;
  }

 private:
  struct Arc {
    std::int32_t from = 0, to = 0;
    Amount capacity = 0;
    std::vector<Lane> lanes;
  };
  static std::size_t size(std::int32_t number) { return static_cast<std::size_t>(number); }

  std::int32_t arc(std::int32_t from, std::int32_t to) {
    for (const std::int32_t a : out_[size(from)])
      if (arcs_[size(a)].to == to) return a;
    const auto number = static_cast<std::int32_t>(arcs_.size());
    arcs_.push_back({from, to, 0, {}});
    out_[size(from)].push_back(number);
    in_[size(to)].push_back(number);
    for (std::vector<Amount>& flow : flows_) flow.push_back(0);
    return number;
  }

  // Finds one flow per device, of everything that the roots send.
  void find_flows(const std::vector<std::int32_t>& roots, Ratio rate) {
    MaxFlow flow(nodes_ + 1);
    for (const Arc& it : arcs_) flow.add_arc(it.from, it.to, it.capacity);
    for (const std::int32_t root : roots) flow.add_arc(nodes_, root, rate.over);
    const Amount wanted = rate.over * static_cast<Amount>(roots.size());
    for (std::int32_t v = 0; v < gpus_; ++v) {
      flow.reset();
      complete_ = flow.run(nodes_, v, wanted) == wanted && complete_;
      std::vector<Amount> used(arcs_.size());
      for (std::size_t a = 0; a < arcs_.size(); ++a) used[a] = flow.flow(2 * static_cast<std::int32_t>(a));
      flows_.push_back(std::move(used));
    }
  }

  // Searches the residual graph from `starts`; records the entering arc (2a forward, 2a+1
  // backward).
  bool search(const std::vector<Amount>& flow, std::int32_t goal) {
    for (std::size_t i = 0; i < queue_.size(); ++i) {
      const std::int32_t node = queue_[i];
      const auto visit = [&](std::int32_t to, std::int32_t by) {
        if (by_[size(to)] != -1) return;
        by_[size(to)] = by;
        queue_.push_back(to);
      };
      if (marked_[size(node)] == goal) {
        end_ = node;
        return true;
      }
      for (const std::int32_t a : out_[size(node)])
        if (flow[size(a)] < arcs_[size(a)].capacity) visit(arcs_[size(a)].to, 2 * a);
      for (const std::int32_t a : in_[size(node)])
        if (flow[size(a)] > 0) visit(arcs_[size(a)].from, 2 * a + 1);
    }
    return false;
  }

  // Pushes up to `most` from any of `starts` to any of `ends`.
  Amount push(std::vector<Amount>& flow, std::initializer_list<std::int32_t> starts,
              std::initializer_list<std::int32_t> ends, Amount most) {
    for (const std::int32_t start : starts)
      for (const std::int32_t end : ends)
        if (start == end) return most;  // unlimited
    Amount pushed = 0;
    while (pushed < most) {
      by_.assign(size(nodes_), -1);
      marked_.assign(size(nodes_), 0);
      queue_.clear();
      for (const std::int32_t end : ends) marked_[size(end)] = 1;
      for (const std::int32_t start : starts) {
        if (by_[size(start)] == -2) continue;
        by_[size(start)] = -2;
        queue_.push_back(start);
      }
      if (!search(flow, 1)) break;
      Amount amount = most - pushed;
      for (std::int32_t node = end_; by_[size(node)] >= 0;) {
        const std::int32_t by = by_[size(node)], a = by / 2;
        amount = std::min(amount, by % 2 == 0 ? arcs_[size(a)].capacity - flow[size(a)] : flow[size(a)]);
        node = by % 2 == 0 ? arcs_[size(a)].from : arcs_[size(a)].to;
      }
      for (std::int32_t node = end_; by_[size(node)] >= 0;) {
        const std::int32_t by = by_[size(node)], a = by / 2;
        flow[size(a)] += by % 2 == 0 ? amount : -amount;
        node = by % 2 == 0 ? arcs_[size(a)].from : arcs_[size(a)].to;
      }
      pushed += amount;
    }
    return pushed;
  }

  // How much of `wanted` can be split off from arcs a and b so that all flows remain feasible.
  Amount splittable(std::int32_t a, std::int32_t b, Amount wanted) {
    const Arc &into = arcs_[size(a)], &out_of = arcs_[size(b)];
    const std::int32_t u = into.from, w = into.to, t = out_of.to;
    wanted = std::min({wanted, into.capacity, out_of.capacity});
    for (std::int32_t i = 0; i < gpus_ && wanted > 0; ++i) {
      const std::int32_t v = (last_tight_ + i) % gpus_;
      const std::vector<Amount>& flow = flows_[size(v)];
      // First the cuts with the switch on the sink side and its neighbours on the source side, then
      // those with the switch on the source side.
      const Amount beyond = into.capacity - flow[size(a)] + flow[size(b)];
      if (beyond < wanted) {
        trial_ = flow;
        wanted = push(trial_, {u, t}, {v, w}, wanted);
      }
      const Amount here = out_of.capacity - flow[size(b)] + flow[size(a)];
      if (here < wanted) {
        trial_ = flow;
        wanted = push(trial_, {w}, {u, t, v}, wanted);
      }
      if (wanted == 0) last_tight_ = v;
    }
    return wanted;
  }

  // How much capacity can be removed from an arc.
  Amount removable(std::int32_t a, Amount wanted) {
    const Arc& it = arcs_[size(a)];
    wanted = std::min(wanted, it.capacity);
    for (std::int32_t i = 0; i < gpus_ && wanted > 0; ++i) {
      const std::int32_t v = (last_tight_ + i) % gpus_;
      if (it.capacity - flows_[size(v)][size(a)] >= wanted) continue;
      trial_ = flows_[size(v)];
      wanted = push(trial_, {it.from}, {it.to, v}, wanted);
      if (wanted == 0) last_tight_ = v;
    }
    return wanted;
  }

  // Takes `amount` from the lanes of an arc.
  static std::vector<Lane> take(std::vector<Lane>& lanes, Amount amount) {
    std::vector<Lane> taken;
    while (amount > 0) {
      Lane& lane = lanes.back();
      const Amount part = std::min(amount, lane.amount);
      taken.push_back({part, lane.links});
      lane.amount -= part;
      amount -= part;
      if (lane.amount == 0) lanes.pop_back();
    }
    return taken;
  }

  // Reroutes the flow that exceeds an arc's capacity.
  void mend(std::vector<Amount>& flow, std::int32_t a) {
    const Amount over = flow[size(a)] - arcs_[size(a)].capacity;
    if (over <= 0) return;
    flow[size(a)] -= over;
    if (push(flow, {arcs_[size(a)].from}, {arcs_[size(a)].to}, over) < over) complete_ = false;
  }

  void lower(std::int32_t a, Amount amount) {
    take(arcs_[size(a)].lanes, amount);
    arcs_[size(a)].capacity -= amount;
    for (std::vector<Amount>& flow : flows_) mend(flow, a);
  }

  void split(std::int32_t a, std::int32_t b, Amount amount) {
    const std::int32_t u = arcs_[size(a)].from, t = arcs_[size(b)].to;
    std::vector<Lane> first = take(arcs_[size(a)].lanes, amount), second = take(arcs_[size(b)].lanes, amount);
    arcs_[size(a)].capacity -= amount;
    arcs_[size(b)].capacity -= amount;
    std::int32_t past = -1;
    if (u != t) {
      past = arc(u, t);
      Arc& it = arcs_[size(past)];
      it.capacity += amount;
      for (std::size_t i = 0, k = 0; i < first.size() && k < second.size();) {
        const Amount part = std::min(first[i].amount, second[k].amount);
        Lane lane{part, first[i].links};
        lane.links.insert(lane.links.end(), second[k].links.begin(), second[k].links.end());
        if (!it.lanes.empty() && it.lanes.back().links == lane.links)
          it.lanes.back().amount += part;
        else
          it.lanes.push_back(std::move(lane));
        if ((first[i].amount -= part) == 0) ++i;
        if ((second[k].amount -= part) == 0) ++k;
      }
    }
    for (std::vector<Amount>& flow : flows_) {
      const Amount both = std::min({flow[size(a)], flow[size(b)], amount});
      flow[size(a)] -= both;
      flow[size(b)] -= both;
      if (past >= 0) flow[size(past)] += both;
      mend_pair(flow, a, b);
    }
  }

  // Both arcs may be overfull, and the excesses meet at the switch. So both are removed before
  // either is rerouted.
  void mend_pair(std::vector<Amount>& flow, std::int32_t a, std::int32_t b) {
    const Amount over_a = std::max<Amount>(0, flow[size(a)] - arcs_[size(a)].capacity);
    const Amount over_b = std::max<Amount>(0, flow[size(b)] - arcs_[size(b)].capacity);
    if (over_a == 0 && over_b == 0) return;
    flow[size(a)] -= over_a;
    flow[size(b)] -= over_b;
    const std::int32_t u = arcs_[size(a)].from, w = arcs_[size(a)].to, t = arcs_[size(b)].to;
    const Amount through = std::min(over_a, over_b);
    if (push(flow, {u}, {t}, through) < through) complete_ = false;
    if (push(flow, {u}, {w}, over_a - through) < over_a - through) complete_ = false;
    if (push(flow, {w}, {t}, over_b - through) < over_b - through) complete_ = false;
  }

  Amount sum(const std::vector<std::int32_t>& list) const {
    Amount total = 0;
    for (const std::int32_t a : list) total += arcs_[size(a)].capacity;
    return total;
  }

  // Reduces the capacity of switches that receive more than they can forward, or the reverse.
  // Returns whether all were even.
  bool balance() {
    bool even = true;
    for (std::int32_t w = gpus_; w < nodes_; ++w) {
      const Amount more = sum(in_[size(w)]) - sum(out_[size(w)]);
      if (more == 0) continue;
      even = false;
      const std::vector<std::int32_t>& list = more > 0 ? in_[size(w)] : out_[size(w)];
      Amount left = std::abs(more);
      const Amount total = sum(list);
      for (int pass = 0; pass < 2; ++pass)
        for (const std::int32_t a : list) {
          // Proportionally first, then as much as possible.
          const auto share = static_cast<Amount>(static_cast<double>(std::abs(more)) *
                                                 static_cast<double>(arcs_[size(a)].capacity) /
                                                 static_cast<double>(std::max<Amount>(total, 1)));
          const Amount off = removable(a, pass == 0 ? std::min(left, share) : left);
          if (off > 0) lower(a, off);
          left -= off;
        }
    }
    return even;
  }

  // Removes switch w. Returns whether all its capacity became logical links.
  bool remove(std::int32_t w) {
    const std::vector<std::int32_t> ins = in_[size(w)], outs = out_[size(w)];
    const Amount total = std::max<Amount>(1, sum(outs));
    for (int pass = 0; pass < 3; ++pass)
      for (std::size_t i = 0; i < ins.size(); ++i) {
        const std::int32_t a = ins[i];
        const std::int32_t u = arcs_[size(a)].from;
        const Amount whole = arcs_[size(a)].capacity;
        Amount own = 0;
        for (const std::int32_t b : outs)
          if (arcs_[size(b)].to == u) own = arcs_[size(b)].capacity;
        // Start after the arc that leads back, so that neighbours start with different arcs.
        std::size_t start = 0;
        for (std::size_t k = 0; k < outs.size(); ++k)
          if (arcs_[size(outs[k])].to == u) start = k + 1;
        for (std::size_t k = 0; k < outs.size() && arcs_[size(a)].capacity > 0; ++k) {
          const std::int32_t b = outs[(start + k) % outs.size()];
          const bool back = arcs_[size(b)].to == u;
          if (arcs_[size(b)].capacity == 0 || back != (pass == 2)) continue;
          if (deadline_.over()) return false;
          // Proportional shares first: many short links make flat trees.
          const auto fair =
              static_cast<Amount>(static_cast<double>(whole) * static_cast<double>(arcs_[size(b)].capacity) /
                                  static_cast<double>(std::max<Amount>(1, total - own)));
          const Amount amount = splittable(a, b, pass == 0 ? std::max<Amount>(1, fair) : kNoLimit);
          if (amount > 0) split(a, b, amount);
        }
      }
    const bool all = sum(ins) == 0 && sum(outs) == 0;
    for (const std::int32_t a : ins) arcs_[size(a)].capacity = 0;
    for (const std::int32_t b : outs) arcs_[size(b)].capacity = 0;
    return all && complete_;
  }

  std::int32_t gpus_, nodes_;
  const Deadline& deadline_;
  std::vector<Arc> arcs_;
  std::vector<std::vector<std::int32_t>> out_, in_;  // arcs per node
  std::vector<std::vector<Amount>> flows_;           // one per device, by arc
  bool complete_ = true;
  std::int32_t last_tight_ = 0;
  std::int32_t end_ = -1;
  std::vector<Amount> trial_;
  std::vector<std::int32_t> by_, marked_, queue_;
};

}  // namespace

LogicalLinks remove_switches(const Wires& wires, const std::vector<std::int32_t>& roots, Ratio rate,
                             const Deadline& deadline) {
  return SwitchRemoval(wires, roots, rate, deadline).run(rate.under);
}

}  // namespace weft::synthesis
