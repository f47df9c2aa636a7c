#include "weft/program/tasks/step_parts.h"

#include <algorithm>
#include <variant>
#include <vector>

namespace weft::program {

StepParts step_parts(const Program& program, const Timeline& timeline) {
  struct Edge {
    double time;
    int computing, moving;  // change in the number of running tasks
  };
  std::vector<Edge> edges;
  for (std::size_t t = 0; t < timeline.tasks.size(); ++t) {
    const bool moves = std::holds_alternative<Exchange>(program.units[program.tasks[t].unit].kernel);
    const Edge begin{timeline.tasks[t].begin, moves ? 0 : 1, moves ? 1 : 0};
    edges.push_back(begin);
    edges.push_back({timeline.tasks[t].end, -begin.computing, -begin.moving});
  }
  std::ranges::sort(edges, {}, &Edge::time);
  StepParts parts;
  double last = 0;
  int computing = 0, moving = 0;
  for (const Edge& edge : edges) {
    const double seconds = edge.time - last;
    (computing > 0 ? parts.computing : moving > 0 ? parts.exposed : parts.idle) += seconds;
    if (moving > 0) parts.moving += seconds;
    last = edge.time;
    computing += edge.computing;
    moving += edge.moving;
  }
  return parts;
}

}  // namespace weft::program
