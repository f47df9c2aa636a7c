#include "weft/synthesis/tree_program.h"

#include <fmt/format.h>

#include "weft/collective/check_moves.h"

namespace weft::synthesis {
namespace {

using collective::Buffer;
using collective::Kind;
using collective::Program;

Amount trees_of_a_root(const std::vector<Tree>& trees) {
  Amount count = 0;
  for (const Tree& tree : trees)
    if (tree.root == trees.front().root) count += tree.times;
  return count;
}

class TreeCompiler {
 public:
  TreeCompiler(const TreeProgram& request, const std::vector<Tree>& down, const std::vector<Tree>& up)
      : request_(request), down_(down), up_(up), hops_(request.pace, request.pieces) {
    rooted_ = request.kind == Kind::broadcast || request.kind == Kind::reduce;
    block_ = trees_of_a_root(down.empty() ? up : down) * request.pieces;
    chunks_ = rooted_ ? block_ : block_ * request.ranks;
  }

  Result<Program> compile() {
    WEFT_TRY_STATUS(check_size());
    for (const bool goes_up : {true, false})
      for (const Tree& tree : goes_up ? up_ : down_)
        for (const TreeEdge& edge : tree.edges) hops_.use(sender(edge, goes_up), receiver(edge, goes_up), tree.times);
    hops_.make_connections();
    last_.assign(static_cast<std::size_t>(chunks_ * request_.ranks), -1);
    add_hops(up_, true);
    add_hops(down_, false);
    return write();
  }

 private:
  static std::int32_t sender(const TreeEdge& edge, bool up) { return up ? edge.to : edge.from; }
  static std::int32_t receiver(const TreeEdge& edge, bool up) { return up ? edge.from : edge.to; }
  Buffer buffer() const { return request_.kind == Kind::all_gather ? Buffer::output : Buffer::input; }

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

  // Chunk c of a root belongs to the (c mod trees)-th of its trees, and to piece c / trees.
  void add_hops(const std::vector<Tree>& trees, bool up) {
    const std::int64_t each = block_ / request_.pieces;
    std::int32_t root = -1;
    std::int64_t next = 0;
    for (const Tree& tree : trees) {
      if (tree.root != root) next = 0;
      root = tree.root;
      for (std::int64_t t = 0; t < tree.times; ++t) {
        for (const TreeEdge& edge : tree.edges) hops_.take_turn(sender(edge, up), receiver(edge, up));
        for (std::int32_t piece = 0; piece < request_.pieces; ++piece) {
          const std::int64_t chunk = (rooted_ ? 0 : root * block_) + piece * each + next + t;
          for (std::size_t e = 0; e < tree.edges.size(); ++e) {
            const TreeEdge& edge = up ? tree.edges[tree.edges.size() - 1 - e] : tree.edges[e];
            add_hop(sender(edge, up), receiver(edge, up), static_cast<std::int32_t>(chunk), piece, up);
          }
        }
      }
      next += tree.times;
    }
  }

  // The last hop that wrote a chunk at a rank.
  std::int32_t& last(std::int32_t rank, std::int32_t chunk) {
    return last_[static_cast<std::size_t>(rank * chunks_ + chunk)];
  }

  void add_hop(std::int32_t from, std::int32_t to, std::int32_t chunk, std::int32_t piece, bool adds) {
    const collective::Slot slot{buffer(), chunk};
    HopProgram::Hop hop{from, to, slot, slot, piece, last(from, chunk), -1, adds};
    if (adds) hop.before = last(to, chunk);
    last(to, chunk) = hops_.add(hop);
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
    program.ranks.resize(static_cast<std::size_t>(request_.ranks));
    for (collective::RankProgram& rank : program.ranks)
      (buffer() == Buffer::output ? rank.output_chunks : rank.input_chunks) = static_cast<std::int32_t>(chunks_);
    const bool both = !up_.empty() && !down_.empty();
    hops_.write(request_.pace.chunk_bytes / request_.pace.rate * (both ? 2 : 1), program);
    return program;
  }

  const TreeProgram& request_;
  const std::vector<Tree>&down_, &up_;
  bool rooted_ = false;
  std::int64_t block_ = 0;   // chunks of a root
  std::int64_t chunks_ = 0;  // of all roots
  HopProgram hops_;
  std::vector<std::int32_t> last_;
};

}  // namespace

Result<Program> tree_program(const TreeProgram& request, const std::vector<Tree>& down,
                             const std::vector<Tree>& up) {
  return TreeCompiler(request, down, up).compile();
}

}  // namespace weft::synthesis
