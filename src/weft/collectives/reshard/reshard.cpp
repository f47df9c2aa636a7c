#include "weft/collectives/reshard/reshard.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "weft/collectives/reshard/rounds.h"
#include "weft/collectives/reshard/routes.h"

namespace weft::reshard {
namespace {

// A pipeline of h hops in K chunks takes (K + h - 1) / K of the time of one hop.
constexpr std::int64_t kLeastChunks = 64, kChunksPerHop = 50;
// With more hops in total, each route would have too few chunks.
constexpr std::size_t kWantedHops = 256;
// Chunks rotate over the devices of a host, so that each receives some and forwards it to the
// others.
constexpr std::int64_t kMostTurns = 16;
// A cut may move by up to this fraction of a chunk to reach a row start.
constexpr std::int64_t kRowsPerChunk = 256;

// Emits the moves in periods. In each period every route moves one chunk over each of its hops; a
// later hop moves an earlier chunk, so a host forwards only what arrived in an earlier period. All
// periods have the same traffic between hosts, so one schedule (rounds.h) serves all.
class Pipeline {
 public:
  Pipeline(const Reshard& reshard, const std::vector<Cell>& cells, const Routes& routes,
           const MoveOptions& options)
      : reshard_(reshard), cells_(cells), routes_(routes) {
    choose_chunks(options);
    for (std::size_t r = 0; r < routes.routes.size(); ++r) add_traffic(r);
  }

  std::vector<Move> run() {
    move_inside_hosts();
    const std::vector<Stretch> stretches = make_rounds(traffic_);
    std::vector<Turn> turns;
    for (std::size_t s = 0; s < stretches.size(); ++s) {
      std::int64_t at = 0;
      for (const Part& part : parts_[stretches[s].traffic]) {
        const std::int64_t begin = std::max(stretches[s].begin - at, std::int64_t{0}),
                           end = std::min(stretches[s].end - at, part.elements);
        if (begin < end)
          for (std::int64_t chunk = 0; chunk < chunks_; ++chunk)
            turns.push_back({chunk + hop_of(part).after, s, &part, chunk, begin, end});
        at += part.elements;
      }
    }
    std::ranges::stable_sort(turns, {},
                             [](const Turn& turn) { return std::pair(turn.period, turn.stretch); });
    for (const Turn& turn : turns) move_chunk(*turn.part, turn.chunk, turn.begin, turn.end);
    return std::move(moves_);
  }

 private:
  // The traffic of one hop of a route in one period.
  struct Part {
    std::size_t route, hop;
    std::int64_t elements;  // length of the route's longest chunk
  };

  // A range of a part, for one of the chunks.
  struct Turn {
    std::int64_t period;
    std::size_t stretch;
    const Part* part;
    std::int64_t chunk, begin, end;  // element range within the chunk
  };

  const Hop& hop_of(const Part& part) const { return routes_.routes[part.route].hops[part.hop]; }

  void choose_chunks(const MoveOptions& options) {
    std::int64_t turns = 1, moves = 1, longest = 1;
    std::vector<std::int64_t> devices;  // per group: the most devices that need one of its cells
    for (const CellGroup& cell_group : routes_.cell_groups) {
      devices.push_back(1);
      for (const std::size_t cell : cell_group.cells) {
        devices.back() = std::max(devices.back(), std::ssize(cells_[cell].needers));
        for (const std::int32_t host : cell_group.needers)
          turns = std::max(turns, std::ssize(on(host, cells_[cell].needers)));
      }
    }
    for (const Route& route : routes_.routes) {
      longest = std::max(longest, std::int64_t{route.hops.back().after} + 1);
      moves += devices[route.cell_group];
    }
    chunks_ = std::min(turns, kMostTurns);
    if (longest > 1) chunks_ = std::max({chunks_, kLeastChunks, kChunksPerHop * (longest - 1)});
    const double bytes = routes_.lower_bound * static_cast<double>(reshard_.element_bytes);
    const auto by_bytes = static_cast<std::int64_t>(
        bytes / static_cast<double>(std::max<std::int64_t>(options.least_chunk_bytes, 1)));
    chunks_ = std::max<std::int64_t>(std::min({chunks_, by_bytes, options.most_moves / moves}), 1);
  }

  void add_traffic(std::size_t r) {
    const Route& route = routes_.routes[r];
    std::vector<std::int64_t>& begins = begins_.emplace_back();
    for (std::int64_t chunk = 0; chunk < chunks_; ++chunk)
      begins.push_back(at_row(route, route.begin + route.elements() / chunks_ * chunk +
                                         route.elements() % chunks_ * chunk / chunks_));
    begins.front() = route.begin;
    begins.push_back(route.end);
    std::int64_t longest = 0;
    for (std::int64_t chunk = 0; chunk < chunks_; ++chunk)
      longest = std::max(longest, begins[chunk + 1] - begins[chunk]);
    for (std::size_t h = 0; h < route.hops.size(); ++h) {
      const Hop& hop = route.hops[h];
      const auto [at, is_new] = pairs_.try_emplace({hop.from, hop.to}, traffic_.size());
      if (is_new) {
        traffic_.push_back({hop.from, hop.to, 0});
        parts_.emplace_back();
      }
      traffic_[at->second].elements += longest;
      parts_[at->second].push_back({r, h, longest});
    }
  }

  // Moves a position in the route's group back to a row start, if one is near.
  std::int64_t at_row(const Route& route, std::int64_t position) const {
    const CellGroup& cell_group = routes_.cell_groups[route.cell_group];
    const std::size_t i = cell_at(cell_group, position);
    if (i == cell_group.cells.size()) return position;
    const std::int64_t most = route.elements() / chunks_ / kRowsPerChunk;
    return std::max(route.begin, cell_group.begins[i] + whole_rows(cells_[cell_group.cells[i]].box,
                                                                   position - cell_group.begins[i], most));
  }

  static std::size_t cell_at(const CellGroup& cell_group, std::int64_t position) {
    return static_cast<std::size_t>(std::ranges::upper_bound(cell_group.begins, position) -
                                    cell_group.begins.begin()) -
           1;
  }

  // Moves elements [begin, end) of a chunk; offsets are relative to the route's longest chunk.
  void move_chunk(const Part& part, std::int64_t chunk, std::int64_t begin, std::int64_t end) {
    const Route& route = routes_.routes[part.route];
    const CellGroup& cell_group = routes_.cell_groups[route.cell_group];
    const std::int64_t first = begins_[part.route][chunk], last = begins_[part.route][chunk + 1];
    const auto position = [&](std::int64_t of_chunk) {
      return first + of_chunk >= last ? last : std::max(first, at_row(route, first + of_chunk));
    };
    const std::int64_t from = begin == 0 ? first : position(begin), to = position(end);
    if (from >= to) return;
    for (std::size_t i = cell_at(cell_group, from); i < cell_group.cells.size() && cell_group.begins[i] < to;
         ++i) {
      const std::int64_t cell_begin = std::max(from, cell_group.begins[i]) - cell_group.begins[i],
                         cell_end = std::min(to, cell_group.begins[i + 1]) - cell_group.begins[i];
      for (Box& box : boxes_of_range(cells_[cell_group.cells[i]].box, cell_begin, cell_end))
        move_box(hop_of(part), cell_group.cells[i], chunk, std::move(box));
    }
  }

  void move_box(const Hop& hop, std::size_t c, std::int64_t chunk, Box box) {
    const Cell& cell = cells_[c];
    const auto in_turn = [&](std::span<const std::int32_t> devices) {
      return devices[(static_cast<std::size_t>(chunk) + c) % devices.size()];
    };
    const std::int32_t sender = in_turn(on(hop.from, hop.after == 0 ? cell.holders : cell.needers));
    const std::span<const std::int32_t> needers = on(hop.to, cell.needers);
    const std::int32_t receiver = in_turn(needers);
    moves_.push_back({sender, receiver, box, hop.after > 0});
    for (const std::int32_t other : needers)
      if (other != receiver) moves_.push_back({receiver, other, box, true});
  }

  void move_inside_hosts() {
    for (const Cell& cell : cells_)
      for (std::size_t i = 0; i < cell.needers.size(); ++i) {
        const std::int32_t needer = cell.needers[i];
        const std::span<const std::int32_t> holders = on(reshard_.hosts[needer], cell.holders);
        if (holders.empty()) continue;
        const bool has_it = std::ranges::binary_search(holders, needer);
        moves_.push_back({has_it ? needer : holders[i % holders.size()], needer, cell.box, false});
      }
  }

  std::span<const std::int32_t> on(std::int32_t host, const std::vector<std::int32_t>& devices) const {
    return on_host(devices, host, reshard_.hosts);
  }

  const Reshard& reshard_;
  const std::vector<Cell>& cells_;
  const Routes& routes_;
  std::int64_t chunks_ = 1;
  std::vector<std::vector<std::int64_t>> begins_;  // per route: its chunk boundaries
  std::vector<Traffic> traffic_;                   // per period
  std::vector<std::vector<Part>> parts_;           // per traffic, in sending order
  std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> pairs_;
  std::vector<Move> moves_;
};

}  // namespace

Result<MovePlan> plan_moves(const Reshard& reshard, const Links& links, const MoveOptions& options) {
  if (!(links.bytes_per_second > 0))
    return user_error(fmt::format("a host's bandwidth is above 0, found {}", links.bytes_per_second));
  WEFT_TRY(cells, cells_of(reshard));
  WEFT_TRY(routes, find_routes(cells, reshard.hosts, kWantedHops));
  MovePlan plan;
  plan.moves = Pipeline(reshard, cells, routes, options).run();
  plan.lower_bound_seconds =
      routes.lower_bound * static_cast<double>(reshard.element_bytes) / links.bytes_per_second;
  return plan;
}

}  // namespace weft::reshard
