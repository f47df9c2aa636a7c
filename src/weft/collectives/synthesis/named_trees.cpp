#include "weft/collectives/synthesis/named_trees.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "weft/base/check.h"
#include "weft/plan/cluster/topology.h"

namespace weft::synthesis {
namespace {

using collective::Buffer;
using collective::Kind;
using collective::Move;

constexpr std::string_view kTreesEnding = "_trees";
constexpr std::array kKindsOfTrees = {Kind::all_gather, Kind::reduce_scatter, Kind::all_reduce,
                                      Kind::broadcast, Kind::reduce};
// Every rank that runs a name generates its trees, which takes too long for more devices.
constexpr std::int64_t kMostNamedRanks = 64, kMostNamedPieces = 64;

bool is_rooted(Kind kind) { return kind == Kind::broadcast || kind == Kind::reduce; }

Result<std::int64_t> number_of(const collective::Arguments& arguments, std::string_view name,
                               std::int64_t otherwise, std::int64_t least, std::int64_t most) {
  const auto found = arguments.find(name);
  if (found == arguments.end()) return otherwise;
  const auto* const number = std::get_if<std::int64_t>(&found->second);
  if (number != nullptr && *number >= least && *number <= most) return *number;
  return user_error(fmt::format("{} of synthesized trees is a number from {} to {}", name, least, most));
}

Result<cluster::Link> link_of(const collective::Arguments& arguments) {
  cluster::Link link;
  link.bytes_per_second = 1e9;
  if (const auto found = arguments.find("shape"); found != arguments.end()) {
    const auto* const word = std::get_if<std::string>(&found->second);
    const auto shape = word != nullptr ? cluster::find_shape(*word) : std::nullopt;
    if (!shape)
      return user_error(fmt::format("unknown link shape: {}", word != nullptr ? *word : "a number"),
                        "switch, ring, full, mesh, torus, hybrid_cube_mesh or mi250");
    link.shape = *shape;
  }
  if (const auto found = arguments.find("sides"); found != arguments.end()) {
    const auto* const sides = std::get_if<std::vector<std::int64_t>>(&found->second);
    if (sides == nullptr) return user_error("sides of a mesh or a torus are a list", "sides=[4, 4]");
    link.sides = *sides;
  }
  return link;
}

struct AskedTrees {
  Kind kind = Kind::all_gather;
  std::int64_t ranks = 0, pieces = 1, root = 0;
  cluster::Link link;
};

Result<AskedTrees> read_trees(const collective::AlgorithmReference& reference) {
  const auto kind = kind_of_trees(reference.name);
  if (!kind) return user_error(fmt::format("no synthesized trees have this name: {}", reference.name));
  const collective::Arguments& given = reference.arguments;
  static const std::set<std::string_view> kKnown = {"ranks", "shape", "sides", "pieces", "root"};
  for (const auto& [name, value] : given)
    if (!kKnown.contains(name))
      return user_error(fmt::format("{} has no parameter {}", reference.name, name),
                        "ranks, shape, sides, pieces and root");
  WEFT_TRY(ranks, number_of(given, "ranks", 0, 2, kMostNamedRanks));
  WEFT_TRY(pieces, number_of(given, "pieces", 1, 1, kMostNamedPieces));
  WEFT_TRY(root, number_of(given, "root", 0, 0, kMostNamedRanks - 1));
  WEFT_TRY(link, link_of(given));
  return AskedTrees{*kind, ranks, pieces, root, std::move(link)};
}

// One chunk over one link of a tree. `level` counts links from where the tree starts to move.
struct TreeMove {
  std::int64_t turn = 0, level = 0, chunk = 0;
  std::int32_t from = 0, to = 0;
  bool adds = false;

  auto key() const { return std::tuple(turn + level, level, chunk, adds, from, to); }
};

// Adds the moves of a tree: upwards from the leaves, or downwards from the root.
void add_tree(const Tree& tree, std::int32_t ranks, bool up, std::int64_t first_level, TreeMove sample,
              std::vector<TreeMove>& moves, std::int64_t& last_level) {
  std::vector<std::int64_t> depth(static_cast<std::size_t>(ranks), 0);
  for (const TreeEdge& edge : tree.edges)
    depth[static_cast<std::size_t>(edge.to)] = depth[static_cast<std::size_t>(edge.from)] + 1;
  const std::int64_t deepest = *std::ranges::max_element(depth);
  for (const TreeEdge& edge : tree.edges) {
    const std::int64_t below = depth[static_cast<std::size_t>(edge.to)];
    sample.level = first_level + (up ? deepest - below : below - 1);
    sample.from = up ? edge.to : edge.from;
    sample.to = up ? edge.from : edge.to;
    sample.adds = up;
    moves.push_back(sample);
  }
  last_level = std::max(last_level, first_level + deepest);
}

}  // namespace

std::optional<Kind> kind_of_trees(std::string_view name) {
  if (!name.ends_with(kTreesEnding)) return std::nullopt;
  name.remove_suffix(kTreesEnding.size());
  for (const Kind kind : kKindsOfTrees)
    if (collective::name(kind) == name) return kind;
  return std::nullopt;
}

std::optional<std::string> name_of_trees(Kind kind, const cluster::Link& link, std::int32_t pieces) {
  if (std::ranges::find(kKindsOfTrees, kind) == kKindsOfTrees.end()) return std::nullopt;
  collective::AlgorithmReference made{fmt::format("{}{}", collective::name(kind), kTreesEnding), {}};
  const bool switched = link.shape == cluster::Shape::unstated;
  made.arguments["shape"] = std::string(cluster::name(switched ? cluster::Shape::switched : link.shape));
  if (!link.sides.empty()) made.arguments["sides"] = link.sides;
  if (pieces != 1) made.arguments["pieces"] = std::int64_t{pieces};
  return collective::print(made);
}

collective::Moves tree_moves(const Forest& forest, std::int32_t pieces) {
  const bool rooted = is_rooted(forest.kind);
  const std::int64_t each = forest.trees, block = each * pieces;
  collective::Moves made;
  made.name = fmt::format("{}{}", collective::name(forest.kind), kTreesEnding);
  made.collective.kind = forest.kind;
  made.collective.ranks = forest.ranks;
  made.collective.root = forest.root;
  made.collective.chunks =
      static_cast<std::int32_t>(forest.kind == Kind::all_reduce ? block * forest.ranks : block);
  made.in_place = true;
  made.scratch.assign(static_cast<std::size_t>(forest.ranks), 0);

  std::vector<TreeMove> moves;
  std::int64_t level = 0;
  const auto add_all = [&](const std::vector<Tree>& trees, bool up, std::int64_t first_level) {
    std::int32_t root = -1;
    std::int64_t next = 0;
    for (const Tree& tree : trees) {
      if (tree.root != root) next = 0;
      root = tree.root;
      for (std::int64_t t = 0; t < tree.times; ++t, ++next)
        for (std::int64_t piece = 0; piece < pieces; ++piece) {
          TreeMove sample;
          sample.turn = piece;
          sample.chunk = (rooted ? 0 : root * block) + piece * each + next;
          add_tree(tree, forest.ranks, up, first_level, sample, moves, level);
        }
    }
  };
  add_all(forest.up, true, 0);
  add_all(forest.down, false, level);
  std::ranges::sort(moves, {}, &TreeMove::key);

  const Buffer buffer = forest.kind == Kind::all_gather ? Buffer::output : Buffer::input;
  for (const TreeMove& move : moves) {
    const auto chunk = static_cast<std::int32_t>(move.chunk);
    made.moves.push_back({move.adds ? Move::Verb::reduce : Move::Verb::copy,
                          {move.from, buffer, chunk},
                          {move.to, buffer, chunk},
                          1,
                          -1});
  }
  return made;
}

Status check_trees(const collective::AlgorithmReference& reference) {
  WEFT_TRY_STATUS(read_trees(reference));
  return {};
}

Result<collective::Moves> named_trees(const collective::AlgorithmReference& reference) {
  WEFT_TRY(asked, read_trees(reference));
  if (asked.ranks == 0)
    return user_error(fmt::format("{} needs a number of ranks", reference.name),
                      fmt::format("{}(ranks=8, shape=ring)", reference.name));
  const std::int64_t devices = cluster::devices_of(asked.link, asked.ranks);
  if (devices != asked.ranks)
    return user_error(fmt::format("a {} of these sides has {} devices, not {}",
                                  cluster::name(asked.link.shape), devices, asked.ranks));
  if (asked.root >= asked.ranks)
    return user_error(fmt::format("the root must be one of {} devices, found {}", asked.ranks, asked.root));
  cluster::Topology topology;
  for (std::int64_t device = 0; device < asked.ranks; ++device)
    topology.add_node(cluster::NodeKind::device, fmt::format("device {}", device));
  cluster::wire_node(topology, asked.link, 0, asked.ranks);
  WEFT_TRY(forest,
           grow_forest(topology, asked.kind, static_cast<std::int32_t>(asked.root), {}, TreeShares::whole));
  WEFT_CHECK(forest.trees > 0, "small topologies always have trees");
  collective::Moves moves = tree_moves(forest, static_cast<std::int32_t>(asked.pieces));
  moves.name = collective::print(reference);
  return moves;
}

}  // namespace weft::synthesis
