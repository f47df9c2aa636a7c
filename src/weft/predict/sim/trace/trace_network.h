// weft/predict/sim/trace/trace_network.h -- a network of nested rings, switches and full meshes.
//
//   ring 4        switch 4           fully connected 4       two dimensions: every rank is on one
//   0 ⇄ 1         0 ─┐   ┌─ 1        0 ── 1                  of the first kind with its neighbours, and
//   ⇅   ⇅            [ S ]           │ ╳  │                  on one of the second with the ranks at
//   3 ⇄ 2         3 ─┘   └─ 2        3 ── 2                  the same position elsewhere
//
// Ranks are numbered with the first dimension fastest. A wire is unidirectional. A rank has two
// wires into each ring (one per direction) and two to each switch (up and down), and one to every
// other rank of a full mesh. All wires of a dimension are equal, so that the network looks the same
// from every rank.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft::sim {

struct TraceDimension {
  enum class Kind : std::uint8_t { ring, switched, fully_connected };

  Kind kind = Kind::ring;
  std::int32_t ranks = 1;
  double bytes_per_second = 0;
  double latency_seconds = 0;  // per wire; ranks behind a switch are two wires apart

  // Wires that begin or end at only one rank and are numbered by it.
  std::int64_t wires_per_rank() const { return kind == Kind::fully_connected ? ranks : 2; }
};

std::string_view name(TraceDimension::Kind kind);  // Ring, Switch, FullyConnected

struct TraceNetwork {
  std::vector<TraceDimension> dimensions;

  std::int32_t ranks() const;
  std::int64_t wires() const;
  std::int32_t stride(std::size_t dimension) const;  // between neighbours along it
  std::int32_t coordinate(std::int32_t rank, std::size_t dimension) const;

  // Calls visit(dimension, rank, port) for each wire on the route between two ranks: dimension by
  // dimension, on a ring in the shorter direction.
  template <class Visit>
  void route(std::int32_t from, std::int32_t to, Visit&& visit) const;
};

// Fails if a dimension has no ranks or bandwidth, or if there are too many ranks or wires to
// simulate.
Status check(const TraceNetwork& network);

template <class Visit>
void TraceNetwork::route(std::int32_t from, std::int32_t to, Visit&& visit) const {
  std::int32_t here = from, step = 1;
  for (std::size_t d = 0; d < dimensions.size(); ++d) {
    const TraceDimension& dimension = dimensions[d];
    const std::int32_t begin = (from / step) % dimension.ranks, end = (to / step) % dimension.ranks;
    const std::int32_t there = here + (end - begin) * step;
    if (begin != end) {
      if (dimension.kind == TraceDimension::Kind::switched) {
        visit(d, here, 0);
        visit(d, there, 1);
      } else if (dimension.kind == TraceDimension::Kind::fully_connected) {
        visit(d, here, end);
      } else {
        const std::int32_t up = (end - begin + dimension.ranks) % dimension.ranks;
        const bool clockwise = 2 * up <= dimension.ranks;
        const std::int32_t base = here - begin * step, hops = clockwise ? up : dimension.ranks - up;
        for (std::int32_t h = 0; h < hops; ++h) {
          const std::int32_t at = (begin + (clockwise ? h : dimension.ranks - h)) % dimension.ranks;
          visit(d, base + at * step, clockwise ? 0 : 1);
        }
      }
    }
    here = there;
    step *= dimension.ranks;
  }
}

}  // namespace weft::sim
