#include "weft/collectives/synthesis/pack_trees.h"

#include <algorithm>
#include <deque>

namespace weft::synthesis {
namespace {

constexpr std::int32_t kMostInTurns = 16;  // devices, up to which trees grow in turn

// Identical unfinished trees.
struct Growing {
  std::int32_t root = 0;
  Amount times = 0;
  std::vector<TreeEdge> edges;
  std::vector<std::int32_t> depth;  // per device; -1: not reached
  std::vector<Amount> at_most;      // per link: upper bound on the trees that may use it
  std::int32_t node = -1;           // flow node with arcs to all devices that it has reached
  std::int32_t demand = -1;         // flow arc from the source for its share
};

class Packer {
 public:
  Packer(const LogicalLinks& links, const std::vector<std::int32_t>& roots, Amount each,
         const Deadline& deadline)
      : links_(links),
        deadline_(deadline),
        flow_(links.gpus + 1),
        source_(links.gpus),
        turns_(links.gpus <= kMostInTurns),
        out_(count(links.gpus)) {
    for (std::size_t l = 0; l < links.links.size(); ++l) {
      out_[count(links.links[l].from)].push_back(static_cast<std::int32_t>(l));
      left_.push_back(links.links[l].capacity);
    }
    build_flow();
    for (const std::int32_t root : roots) {
      Growing tree;
      tree.root = root;
      tree.times = each;
      tree.depth.assign(count(links.gpus), -1);
      tree.depth[count(root)] = 0;
      tree.at_most.assign(links.links.size(), each);
      wait(std::move(tree));
    }
  }

  Packing run() {
    Packing packing;
    while (!growing_.empty()) {
      Growing tree = std::move(growing_.front());
      growing_.pop_front();
      flow_.set_capacity(tree.demand, 0);
      demanded_ -= tree.times;
      if (!turns_) {
        // This tree is finished before any other grows. Rebuild the flow without the finished ones.
        build_flow();
        tree.node = -1;
      }
      do {
        if (deadline_.over() || !grow(tree)) {
          packing.complete = false;
          return packing;
        }
      } while (!turns_ && !spans(tree));
      if (spans(tree))
        packing.trees.push_back({tree.root, tree.times, std::move(tree.edges)});
      else
        wait(std::move(tree));
    }
    return packing;
  }

 private:
  static std::size_t count(std::int32_t number) { return static_cast<std::size_t>(number); }

  // Builds the flow network of the remaining links and all waiting trees.
  void build_flow() {
    flow_ = MaxFlow(links_.gpus + 1);
    for (std::size_t l = 0; l < left_.size(); ++l)
      flow_.add_arc(links_.links[l].from, links_.links[l].to, left_[l]);
    open_.clear();
    for (std::int32_t v = 0; v < links_.gpus; ++v) open_.push_back(flow_.add_arc(source_, v, 0));
    for (Growing& tree : growing_) add_demand(tree);
  }

  void add_demand(Growing& tree) {
    tree.node = flow_.add_node();
    tree.demand = flow_.add_arc(source_, tree.node, tree.times);
    for (std::int32_t v = 0; v < links_.gpus; ++v)
      if (tree.depth[count(v)] >= 0) flow_.add_arc(tree.node, v, kNoLimit);
  }

  // How many of the trees may use the link. The limit is a set of devices that needs all of its
  // remaining incoming capacity. It also limits every other link into the set, for as long as the
  // tree grows.
  Amount allowed(Growing& tree, std::int32_t link) {
    const LogicalLink& it = links_.links[count(link)];
    const Amount most = std::min(left_[count(link)], tree.times);
    flow_.set_capacity(open_[count(it.from)], kNoLimit);
    flow_.reset();
    const Amount got = flow_.run(source_, it.to, demanded_ + most);
    flow_.set_capacity(open_[count(it.from)], 0);
    const Amount times = got - demanded_;
    if (times < most)
      for (std::size_t l = 0; l < left_.size(); ++l)
        if (flow_.on_source_side(links_.links[l].from) && !flow_.on_source_side(links_.links[l].to))
          tree.at_most[l] = std::min(tree.at_most[l], times);
    return times;
  }

  bool spans(const Growing& tree) const {
    return static_cast<std::int32_t>(tree.edges.size()) + 1 == links_.gpus;
  }

  // Queues the tree and adds its demand to the flow.
  void wait(Growing tree) {
    if (tree.node < 0) add_demand(tree);
    flow_.set_capacity(tree.demand, tree.times);
    demanded_ += tree.times;
    // If trees grow one after the other, started ones are finished first.
    if (!turns_ && !tree.edges.empty())
      growing_.push_front(std::move(tree));
    else
      growing_.push_back(std::move(tree));
  }

  // Queues `times` copies of the tree without the next link.
  void put_back(const Growing& tree, Amount times) {
    Growing rest = tree;
    rest.times = times;
    rest.node = -1;
    wait(std::move(rest));
  }

  // Adds the link that most copies of the tree may use, preferring those near the root.
  bool grow(Growing& tree) {
    std::vector<std::int32_t> near{tree.root};
    for (const TreeEdge& edge : tree.edges) near.push_back(edge.to);
    std::ranges::stable_sort(near, {}, [&](std::int32_t v) { return tree.depth[count(v)]; });
    std::int32_t best = -1;
    Amount most = 0;
    for (const std::int32_t v : near) {
      if (deadline_.over()) return false;
      for (const std::int32_t link : out_[count(v)]) {
        const std::int32_t to = links_.links[count(link)].to;
        if (std::min(left_[count(link)], tree.at_most[count(link)]) <= most || tree.depth[count(to)] >= 0)
          continue;
        const Amount times = allowed(tree, link);
        if (times <= most) continue;
        best = link;
        most = times;
        if (most == tree.times) break;
      }
      if (most == tree.times) break;
    }
    if (best < 0) return false;
    if (most < tree.times) put_back(tree, tree.times - most);
    tree.times = most;
    left_[count(best)] -= most;
    flow_.set_capacity(2 * best, left_[count(best)]);
    const LogicalLink& link = links_.links[count(best)];
    tree.depth[count(link.to)] = tree.depth[count(link.from)] + 1;
    tree.edges.push_back({link.from, link.to, best});
    if (tree.node >= 0) flow_.add_arc(tree.node, link.to, kNoLimit);
    return true;
  }

  const LogicalLinks& links_;
  const Deadline& deadline_;
  MaxFlow flow_;
  std::int32_t source_;
  bool turns_;  // trees grow in turn and stay flat; otherwise one by one, with smaller flows
  std::vector<std::vector<std::int32_t>> out_;  // outgoing links per device
  std::vector<Amount> left_;                    // per link
  std::vector<std::int32_t> open_;              // per device: the arc from the source
  std::deque<Growing> growing_;
  Amount demanded_ = 0;  // by all waiting trees
};

}  // namespace

Packing pack_trees(const LogicalLinks& links, const std::vector<std::int32_t>& roots, Amount each,
                   const Deadline& deadline) {
  Packing packing = Packer(links, roots, each, deadline).run();
  std::ranges::stable_sort(packing.trees, {}, &Tree::root);
  return packing;
}

}  // namespace weft::synthesis
