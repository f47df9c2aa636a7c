#include "weft/collectives/synthesis/tree_program.h"

#include <fmt/format.h>

#include "weft/collectives/chunks/check_moves.h"
#include "weft/collectives/synthesis/index.h"
#include "weft/collectives/synthesis/interleave_shares.h"

namespace weft::synthesis {
namespace {

using collective::Buffer;
using collective::Kind;
using collective::Program;

class TreeCompiler {
 public:
  TreeCompiler(const TreeProgram& request, const Forest& forest)
      : forest_(forest), hops_(request.pace, forest.routes), block_(request.chunks) {
    rooted_ = forest.kind == Kind::broadcast || forest.kind == Kind::reduce;
    chunks_ = rooted_ ? block_ : block_ * forest.ranks;
  }

  Result<Program> compile() {
    WEFT_TRY_STATUS(check_size());
    const std::vector<Message> messages = deal();
    use(messages);
    hops_.make_connections();
    last_.assign(static_cast<std::size_t>(chunks_ * forest_.ranks), -1);
    add_hops(messages, true);
    add_hops(messages, false);
    return write();
  }

 private:
  static std::int32_t sender(const TreeEdge& edge, bool up) { return up ? edge.to : edge.from; }
  static std::int32_t receiver(const TreeEdge& edge, bool up) { return up ? edge.from : edge.to; }
  Buffer buffer() const { return forest_.kind == Kind::all_gather ? Buffer::output : Buffer::input; }

  Status check_size() const {
    const auto ranks = static_cast<double>(forest_.ranks), block = static_cast<double>(block_);
    const double chunks = rooted_ ? block : block * ranks;
    const double moved = chunks * (ranks - 1) * (!forest_.up.empty() && !forest_.down.empty() ? 2 : 1);
    if (moved <= static_cast<double>(collective::kMostMovedChunks) &&
        chunks * ranks <= static_cast<double>(collective::kMostMemoryChunks))
      return {};
    return user_error(
        fmt::format("the program would be too long: {} chunks per rank, {} ranks", block_, forest_.ranks),
        "fewer chunks make a shorter one");
  }

  // The trees of a message. If chunks go up one tree and down another, messages are cut at the
  // boundaries of both, so that each waits for one.
  struct Message {
    const Tree *up = nullptr, *down = nullptr;
    std::int64_t first = 0, count = 0;
  };

  std::vector<Message> deal() const {
    std::vector<Message> chunks(static_cast<std::size_t>(chunks_));  // count 1: a message starts here
    for (const bool up : {true, false}) {
      const std::vector<Tree>& trees = up ? forest_.up : forest_.down;
      std::size_t block = 0;
      for (std::size_t first = 0, end = 0; first < trees.size(); first = end, ++block) {
        std::vector<double> shares;
        for (; end < trees.size() && trees[end].root == trees[first].root; ++end)
          shares.push_back(trees[end].share);
        for (const StreamMessage& message : interleave_shares(shares, block_))
          for (std::int64_t k = 0; k < message.count; ++k) {
            Message& chunk = chunks[block * static_cast<std::size_t>(block_) +
                                    static_cast<std::size_t>(message.first + k)];
            (up ? chunk.up : chunk.down) = &trees[first + at(message.stream)];
            if (k == 0) chunk.count = 1;
          }
      }
    }
    std::vector<Message> messages;
    for (std::size_t c = 0; c < chunks.size(); ++c)
      if (chunks[c].count == 1)
        messages.push_back({chunks[c].up, chunks[c].down, static_cast<std::int64_t>(c), 1});
      else
        ++messages.back().count;
    return messages;
  }

  void use(const std::vector<Message>& messages) {
    for (const Message& message : messages)
      for (const bool up : {true, false})
        if (const Tree* tree = up ? message.up : message.down)
          for (const TreeEdge& edge : tree->edges)
            hops_.use(sender(edge, up), receiver(edge, up), edge.route, message.count);
  }

  void add_hops(const std::vector<Message>& messages, bool up) {
    for (const Message& message : messages) {
      const Tree* const tree = up ? message.up : message.down;
      if (tree == nullptr) continue;
      const double when = static_cast<double>(message.first % block_) / static_cast<double>(block_);
      for (std::size_t e = 0; e < tree->edges.size(); ++e)
        add_hop(up ? tree->edges[tree->edges.size() - 1 - e] : tree->edges[e], message, when, up);
    }
  }

  // The last hop that wrote a message (given by its first chunk) at a rank.
  std::int32_t& last(std::int32_t rank, std::int32_t chunk) {
    return last_[static_cast<std::size_t>(rank * chunks_ + chunk)];
  }

  void add_hop(const TreeEdge& edge, const Message& message, double when, bool up) {
    const std::int32_t from = sender(edge, up), to = receiver(edge, up);
    const auto chunk = static_cast<std::int32_t>(message.first);
    const collective::Slot slot{buffer(), chunk};
    HopProgram::Hop hop{
        from, to, edge.route, slot, slot, static_cast<std::int32_t>(message.count), when, last(from, chunk),
        -1,   up};
    if (up) hop.before = last(to, chunk);
    last(to, chunk) = hops_.add(hop);
  }

  Program write() {
    Program program;
    program.name = fmt::format("{}_trees", collective::name(forest_.kind));
    program.collective.kind = forest_.kind;
    program.collective.ranks = forest_.ranks;
    program.collective.root = forest_.root;
    program.collective.chunks =
        static_cast<std::int32_t>(forest_.kind == Kind::all_reduce ? block_ * forest_.ranks : block_);
    program.placement = collective::Placement::in_place;
    program.ranks.resize(static_cast<std::size_t>(forest_.ranks));
    for (collective::RankProgram& rank : program.ranks)
      (buffer() == Buffer::output ? rank.output_chunks : rank.input_chunks) =
          static_cast<std::int32_t>(chunks_);
    hops_.write(program);
    return program;
  }

  const Forest& forest_;
  bool rooted_ = false;
  HopProgram hops_;
  std::int64_t block_ = 0;   // chunks per root
  std::int64_t chunks_ = 0;  // of all roots
  std::vector<std::int32_t> last_;
};

}  // namespace

Result<Program> tree_program(const TreeProgram& request, const Forest& forest) {
  return TreeCompiler(request, forest).compile();
}

}  // namespace weft::synthesis
