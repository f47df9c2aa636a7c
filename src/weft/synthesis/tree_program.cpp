#include "weft/synthesis/tree_program.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <queue>
#include <tuple>

#include <fmt/format.h>

#include "weft/collective/check_moves.h"

namespace weft::synthesis {
namespace {

using collective::Buffer;
using collective::Kind;
using collective::Op;
using collective::Program;
using collective::Step;

// One chunk over one link. It may start once those it waits for are done; it is done at the receiver.
struct Hop {
  std::int32_t chunk = 0, piece = 0;
  std::int32_t connection = -1;
  std::int32_t after = -1;   // the hop that brought, or last added to, what is sent
  std::int32_t before = -1;  // the earlier addition to the same chunk at the receiver
  bool adds = false;
  double due = 0;                         // when it must start so that nothing after it comes late
  std::int32_t sent = -1, received = -1;  // steps
};

struct LinkUse {
  std::int32_t from = 0, to = 0;
  Amount trees = 0;           // that use it, in all
  std::int32_t channels = 1;  // connections it has
  std::int32_t first = 0;     // of them
  std::int32_t turn = 0;
};

Amount trees_of_a_root(const std::vector<Tree>& trees) {
  Amount count = 0;
  for (const Tree& tree : trees)
    if (tree.root == trees.front().root) count += tree.times;
  return count;
}

class TreeCompiler {
 public:
  TreeCompiler(const TreeProgram& request, const std::vector<Tree>& down, const std::vector<Tree>& up)
      : request_(request), down_(down), up_(up) {
    rooted_ = request.kind == Kind::broadcast || request.kind == Kind::reduce;
    block_ = trees_of_a_root(down.empty() ? up : down) * request.pieces;
  }

  Result<Program> compile() {
    WEFT_TRY_STATUS(check_size());
    find_links();
    if (!up_.empty()) add_hops(up_, true);
    if (!down_.empty()) add_hops(down_, false);
    play();
    return write();
  }

 private:
  static std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

  Status check_size() const {
    const auto ranks = static_cast<double>(request_.ranks), block = static_cast<double>(block_);
    const double chunks = rooted_ ? block : block * ranks;
    const double moved = chunks * (ranks - 1) * (!up_.empty() && !down_.empty() ? 2 : 1);
    if (moved <= static_cast<double>(collective::kMostMovedChunks) &&
        chunks * ranks <= static_cast<double>(collective::kMostMemoryChunks))
      return {};
    return user_error(
        fmt::format("the program would be too long: {} chunks of each of {} ranks", block_, request_.ranks),
        "fewer trees or fewer pieces make a shorter one");
  }

  void find_links() {
    const auto count = [&](const std::vector<Tree>& trees, bool back) {
      for (const Tree& tree : trees)
        for (const TreeEdge& edge : tree.edges) {
          const std::pair key = back ? std::pair(edge.to, edge.from) : std::pair(edge.from, edge.to);
          const auto [found, fresh] = numbers_.try_emplace(key, static_cast<std::int32_t>(links_.size()));
          if (fresh) links_.push_back({key.first, key.second});
          links_[at(found->second)].trees += tree.times;
        }
    };
    count(up_, true);
    count(down_, false);
    for (LinkUse& link : links_) {
      const double rate = static_cast<double>(link.trees) * request_.rate;
      const double most =
          std::min<double>(request_.most_channels, static_cast<double>(link.trees) * request_.pieces);
      link.channels =
          static_cast<std::int32_t>(std::clamp(std::ceil(rate / request_.connection_rate), 1.0, most));
      link.first = connections_;
      connections_ += link.channels;
      const double chunk_time =
          std::max(request_.chunk_bytes * link.channels / rate, request_.chunk_bytes / request_.block_rate);
      for (std::int32_t c = 0; c < link.channels; ++c) durations_.push_back(chunk_time);
    }
  }

  // Chunk c of a root belongs to the (c mod trees)-th of its trees, and to piece c / trees.
  void add_hops(const std::vector<Tree>& trees, bool up) {
    const std::int64_t each = block_ / request_.pieces;
    const std::int64_t chunks = rooted_ ? block_ : block_ * request_.ranks;
    // The last hop that wrote a chunk at a rank.
    if (last_.empty()) last_.assign(at(chunks * request_.ranks), -1);
    std::int32_t root = -1;
    std::int64_t next = 0;
    for (const Tree& tree : trees) {
      if (tree.root != root) next = 0;
      root = tree.root;
      for (std::int64_t t = 0; t < tree.times; ++t) {
        take_turns(tree, up);
        for (std::int32_t piece = 0; piece < request_.pieces; ++piece) {
          const std::int64_t chunk = (rooted_ ? 0 : root * block_) + piece * each + next + t;
          for (std::size_t e = 0; e < tree.edges.size(); ++e) {
            const TreeEdge& edge = up ? tree.edges[tree.edges.size() - 1 - e] : tree.edges[e];
            add_hop(up ? edge.to : edge.from, up ? edge.from : edge.to, static_cast<std::int32_t>(chunk),
                    piece, chunks, up);
          }
        }
      }
      next += tree.times;
    }
  }

  // The pieces of a tree go one after another over the same connections, so that none holds up another tree's.
  void take_turns(const Tree& tree, bool up) {
    for (const TreeEdge& edge : tree.edges) {
      LinkUse& link =
          links_[at(numbers_.at(up ? std::pair(edge.to, edge.from) : std::pair(edge.from, edge.to)))];
      link.turn =
          (link.turn + std::max(1, static_cast<std::int32_t>(link.channels / link.trees))) % link.channels;
    }
  }

  void add_hop(std::int32_t from, std::int32_t to, std::int32_t chunk, std::int32_t piece,
               std::int64_t chunks, bool adds) {
    LinkUse& link = links_[at(numbers_.at({from, to}))];
    Hop hop;
    hop.chunk = chunk;
    hop.piece = piece;
    // A link with more connections than trees deals the pieces out as well.
    const std::int32_t more = std::max(1, static_cast<std::int32_t>(link.channels / link.trees));
    hop.connection = link.first + (link.turn + piece % more) % link.channels;
    hop.after = last_[at(from * chunks + chunk)];
    hop.adds = adds;
    std::int32_t& last = last_[at(to * chunks + chunk)];
    if (adds) hop.before = last;
    last = static_cast<std::int32_t>(hops_.size());
    hops_.push_back(hop);
  }

  double seconds_of(const Hop& hop) const {
    return durations_[at(hop.connection)] + request_.chunk_bytes / request_.block_rate +
           request_.message_seconds;
  }

  // A piece is due one turn of all trees after the one before; what leads far must leave early.
  void find_dues() {
    const double turn = request_.chunk_bytes / request_.rate * (!up_.empty() && !down_.empty() ? 2 : 1);
    for (Hop& hop : hops_) hop.due = hop.piece * turn;
    for (std::size_t h = hops_.size(); h-- > 0;) {
      const Hop& hop = hops_[h];
      for (const std::int32_t earlier : {hop.after, hop.before})
        if (earlier >= 0)
          hops_[at(earlier)].due = std::min(hops_[at(earlier)].due, hop.due - seconds_of(hops_[at(earlier)]));
    }
  }

  // Finds when every hop starts if each connection takes what is due first of what is ready.
  void play() {
    find_dues();
    std::vector<std::int32_t> waits(hops_.size(), 0), first(hops_.size(), -1), next(2 * hops_.size(), -1);
    const auto follow = [&](std::int32_t hop, std::int32_t earlier, std::size_t slot) {
      if (earlier < 0) return;
      ++waits[at(hop)];
      next[2 * at(hop) + slot] = first[at(earlier)];
      first[at(earlier)] = 2 * hop + static_cast<std::int32_t>(slot);
    };
    for (std::size_t h = 0; h < hops_.size(); ++h) {
      follow(static_cast<std::int32_t>(h), hops_[h].after, 0);
      follow(static_cast<std::int32_t>(h), hops_[h].before, 1);
    }
    using Ready = std::tuple<double, std::int32_t>;  // due, hop
    std::vector<std::priority_queue<Ready, std::vector<Ready>, std::greater<>>> ready(at(connections_));
    using Done = std::tuple<double, std::int32_t>;  // 2 * hop: sent, 2 * hop + 1: received
    std::priority_queue<Done, std::vector<Done>, std::greater<>> done;
    std::vector<bool> busy(at(connections_), false);
    const auto start = [&](std::int32_t connection, double now) {
      auto& queue = ready[at(connection)];
      if (busy[at(connection)] || queue.empty()) return;
      const std::int32_t hop = std::get<1>(queue.top());
      queue.pop();
      busy[at(connection)] = true;
      order_.push_back(hop);
      done.emplace(now + durations_[at(connection)], 2 * hop);
      done.emplace(now + seconds_of(hops_[at(hop)]), 2 * hop + 1);
    };
    for (std::size_t h = 0; h < hops_.size(); ++h)
      if (waits[h] == 0) ready[at(hops_[h].connection)].emplace(hops_[h].due, static_cast<std::int32_t>(h));
    for (std::int32_t c = 0; c < connections_; ++c) start(c, 0);
    while (!done.empty()) {
      const auto [now, what] = done.top();
      const std::int32_t hop = what / 2;
      done.pop();
      if (what % 2 == 0) {
        busy[at(hops_[at(hop)].connection)] = false;
        start(hops_[at(hop)].connection, now);
        continue;
      }
      for (std::int32_t entry = first[at(hop)]; entry >= 0; entry = next[at(entry)]) {
        const std::int32_t later = entry / 2;
        if (--waits[at(later)] > 0) continue;
        ready[at(hops_[at(later)].connection)].emplace(hops_[at(later)].due, later);
        start(hops_[at(later)].connection, now);
      }
    }
  }

  Program write() {
    Program program;
    program.name = fmt::format("{}_trees", collective::name(request_.kind));
    program.collective.kind = request_.kind;
    program.collective.ranks = request_.ranks;
    program.collective.root = request_.root;
    program.collective.chunks =
        static_cast<std::int32_t>(request_.kind == Kind::all_reduce ? block_ * request_.ranks : block_);
    program.placement = collective::Placement::in_place;
    const bool gathers = request_.kind == Kind::all_gather;
    const Buffer buffer = gathers ? Buffer::output : Buffer::input;
    const auto chunks = static_cast<std::int32_t>(rooted_ ? block_ : block_ * request_.ranks);
    program.ranks.resize(at(request_.ranks));
    for (collective::RankProgram& rank : program.ranks)
      (gathers ? rank.output_chunks : rank.input_chunks) = chunks;

    struct Ends {
      std::int32_t from, to, sender, receiver;
    };
    std::vector<Ends> ends;
    for (const LinkUse& link : links_)
      for (std::int32_t c = 0; c < link.channels; ++c) {
        auto &sending = program.ranks[at(link.from)].blocks, &receiving = program.ranks[at(link.to)].blocks;
        ends.push_back({link.from, link.to, static_cast<std::int32_t>(sending.size()),
                        static_cast<std::int32_t>(receiving.size())});
        sending.push_back({link.to, -1, c, {}});
        receiving.push_back({-1, link.from, c, {}});
        program.channels = std::max(program.channels, c + 1);
      }
    const auto wait_for = [&](Step& step, std::int32_t hop) {
      if (hop < 0) return;
      const Hop& earlier = hops_[at(hop)];
      const Ends& there = ends[at(earlier.connection)];
      step.wait_block = there.receiver;
      step.wait_step = earlier.received;
      program.ranks[at(there.to)].blocks[at(there.receiver)].steps[at(earlier.received)].publishes = true;
    };
    for (const std::int32_t number : order_) {
      Hop& hop = hops_[at(number)];
      const Ends& end = ends[at(hop.connection)];
      auto& sending = program.ranks[at(end.from)].blocks[at(end.sender)].steps;
      auto& receiving = program.ranks[at(end.to)].blocks[at(end.receiver)].steps;
      const collective::Slot slot{buffer, hop.chunk};
      Step send{Op::send, slot, slot}, receive{hop.adds ? Op::receive_reduce_copy : Op::receive, slot, slot};
      wait_for(send, hop.after);
      wait_for(receive, hop.before);
      hop.sent = static_cast<std::int32_t>(sending.size());
      hop.received = static_cast<std::int32_t>(receiving.size());
      sending.push_back(send);
      receiving.push_back(receive);
    }
    return program;
  }

  const TreeProgram& request_;
  const std::vector<Tree>&down_, &up_;
  bool rooted_ = false;
  std::int64_t block_ = 0;  // chunks of a root
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> numbers_;
  std::vector<LinkUse> links_;
  std::int32_t connections_ = 0;
  std::vector<double> durations_;  // seconds of one chunk on a connection
  std::vector<Hop> hops_;
  std::vector<std::int32_t> last_, order_;
};

}  // namespace

Result<Program> tree_program(const TreeProgram& request, const std::vector<Tree>& down,
                             const std::vector<Tree>& up) {
  return TreeCompiler(request, down, up).compile();
}

}  // namespace weft::synthesis
