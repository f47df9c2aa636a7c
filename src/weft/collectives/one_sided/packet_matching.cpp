#include "weft/collectives/one_sided/packet_matching.h"

#include <map>
#include <set>
#include <unordered_set>
#include <utility>

namespace weft::collective {

void match_packets(const std::vector<MemoryNode>& nodes, std::vector<MemoryAccess>& accesses,
                   OrderEdges& edges) {
  // Packets computed from a chunk that the plan writes may differ from one write to the next.
  std::unordered_set<std::int64_t> written;
  for (const MemoryAccess& access : accesses)
    if (access.writes && !access.packet) written.insert(access.cell);
  for (MemoryAccess& access : accesses)
    if (access.source >= 0 && written.contains(access.source)) access.source = -1;
  struct Users {
    std::vector<const MemoryAccess*> writers, readers;
  };
  std::map<std::pair<std::int64_t, std::int32_t>, Users> cells;  // by cell and run
  for (const MemoryAccess& access : accesses) {
    if (!access.packet) continue;
    Users& users = cells[{access.cell, nodes[access.node].run}];
    (access.writes ? users.writers : users.readers).push_back(&access);
  }
  std::set<std::pair<std::int32_t, std::int32_t>> seen;
  for (const auto& [cell, users] : cells) {
    const MemoryAccess* first = nullptr;
    bool known = true;
    for (const MemoryAccess* writer : users.writers) {
      if (writer->copies) continue;
      const auto same_block = [&] {
        const Where &a = nodes[first->node].where, &b = nodes[writer->node].where;
        return a.rank == b.rank && a.block == b.block && first->source >= 0 &&
               first->source == writer->source;
      };
      known = known && (first == nullptr || same_block());
      if (first == nullptr) first = writer;
    }
    if (first == nullptr || !known) continue;
    for (const MemoryAccess* reader : users.readers)
      if (reader->node != first->node && seen.insert({first->node, reader->node}).second)
        edges.add(first->node, reader->node, true);
  }
}

}  // namespace weft::collective
