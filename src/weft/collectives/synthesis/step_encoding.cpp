#include "weft/collectives/synthesis/step_encoding.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace weft::synthesis {
namespace {

constexpr std::size_t kMostOrdered = 24;     // sends compared to order copies
constexpr std::int64_t kMostTightSlack = 2;  // spare chunks per device up to which limits are tight
constexpr double kMostClauses = 30e6;        // a few gigabytes

std::size_t z(std::int32_t number) { return static_cast<std::size_t>(number); }

}  // namespace

StepEncoding::StepEncoding(const StepNetwork& network, const StepProblem& problem, std::int32_t steps,
                           std::int32_t rounds, const StepGroup& group, const StepClock& clock)
    : network_(network),
      problem_(problem),
      steps_(steps),
      rounds_(rounds),
      distances_(step_distances(network)),
      entering_(z(network.devices)),
      group_(group) {
  for (std::size_t i = 0; i < network.edges.size(); ++i)
    entering_[z(network.edges[i].to)].push_back(static_cast<std::int32_t>(i));
  fits_group_ = act_on_chunks(group_);
  fits_memory_ = estimate(network, problem, steps, rounds, group.size()) <= kMostClauses;
  if (!fits_group_ || !fits_memory_) return;

  windows_.resize(representatives_.size() * z(network.devices));
  has_.assign(representatives_.size() * z(network.devices) * z(steps + 1), StepFormula::kFalse);
  send_.assign(representatives_.size() * network.edges.size() * z(steps + 1), StepFormula::kFalse);
  encode_rounds();
  for (const std::int32_t chunk : representatives_) {
    if (clock.over()) return;
    encode_chunk(chunk);
  }
  for (const std::int32_t chunk : representatives_)
    if (!copies_are_permuted_ && (chunk + 1) % problem.copies != 0) order_copies(chunk, chunk + 1);

  for (const StepLimit& limit : network.limits) {
    // Symmetric images of a limit are equivalent; encode only the first.
    const bool is_first = std::ranges::all_of(group_, [&](const StepSymmetry& symmetry) {
      std::vector<std::int32_t> image;
      for (const std::int32_t edge : limit.edges) image.push_back(symmetry.edge[z(edge)]);
      std::ranges::sort(image);
      return limit.edges <= image;
    });
    if (!is_first) continue;
    for (std::int32_t step = 1; step <= steps_; ++step) {
      if (clock.over()) return;
      encode_limit(limit, step);
    }
  }
  is_whole_ = true;
}

double StepEncoding::estimate(const StepNetwork& network, const StepProblem& problem, std::int32_t steps,
                              std::int32_t rounds, std::size_t order) {
  const auto chunks = static_cast<double>(problem.chunks.size());
  double a_step = 4 * chunks * static_cast<double>(network.edges.size());
  for (const StepLimit& limit : network.limits) {
    const double sends = chunks * static_cast<double>(limit.edges.size());
    a_step += sends * std::min(sends, static_cast<double>(chunks_in(limit, rounds - steps + 1) + 1));
  }
  return a_step * static_cast<double>(steps) / static_cast<double>(order);
}

bool StepEncoding::act_on_chunks(const StepGroup& group) {
  // Kinds of chunks by source and targets. If a symmetry fixes a kind, it permutes its copies.
  const std::int32_t copies = problem_.copies;
  std::map<std::pair<std::int32_t, std::vector<std::int32_t>>, std::int32_t> kinds;
  for (std::size_t chunk = 0; chunk < problem_.chunks.size(); chunk += z(copies))
    kinds[{problem_.chunks[chunk].source, problem_.chunks[chunk].targets}] =
        static_cast<std::int32_t>(chunk) / copies;

  const auto order = static_cast<std::int32_t>(group.size());
  std::map<std::vector<std::int32_t>, std::int32_t> element;
  for (std::int32_t i = 0; i < order; ++i) element[group[z(i)].device] = i;
  const auto product = [&](std::int32_t a, std::int32_t b) {
    std::vector<std::int32_t> both = group[z(b)].device;
    for (std::int32_t& device : both) device = group[z(a)].device[z(device)];
    return element.at(both);
  };

  images_.assign(problem_.chunks.size(), {});
  for (std::size_t i = 0; i < problem_.chunks.size(); ++i) {
    const auto chunk = static_cast<std::int32_t>(i);
    if (problem_.chunks[i].targets.empty() || images_[i].chunk >= 0) continue;
    const auto place = static_cast<std::int32_t>(representatives_.size());
    representatives_.push_back(chunk);
    for (std::int32_t g = 0; g < order; ++g) {
      std::vector<std::int32_t> targets;
      for (const std::int32_t target : problem_.chunks[i].targets)
        targets.push_back(group[z(g)].device[z(target)]);
      std::ranges::sort(targets);
      const auto kind = kinds.find({group[z(g)].device[z(problem_.chunks[i].source)], targets});
      if (kind == kinds.end()) return false;
      std::int32_t copy = chunk % copies;
      if (kind->second == chunk / copies && g != 0) copies_are_permuted_ = true;
      if (copies_are_permuted_) {
        if (copies % order != 0) return false;
        copy = copy / order * order + product(g, copy % order);
      }
      Image& image = images_[z(kind->second * copies + copy)];
      if (image.chunk >= 0) return false;
      // Maps the image back to the representative.
      std::int32_t inverse = 0;
      while (product(inverse, g) != 0) ++inverse;
      image = {chunk, place, &group[z(inverse)]};
    }
  }
  return true;
}

const StepEncoding::Window& StepEncoding::window(std::int32_t chunk, std::int32_t device) const {
  const Image& image = images_[z(chunk)];
  return windows_[z(image.place) * z(network_.devices) + z(image.by->device[z(device)])];
}

int StepEncoding::has(std::int32_t chunk, std::int32_t device, std::int32_t step) const {
  const Image& image = images_[z(chunk)];
  const std::size_t row = z(image.place) * z(network_.devices) + z(image.by->device[z(device)]);
  const Window& window = windows_[row];
  if (step < window.earliest || window.latest < window.earliest) return StepFormula::kFalse;
  return has_[row * z(steps_ + 1) + z(std::min(step, window.latest))];
}

int StepEncoding::send(std::int32_t chunk, std::int32_t edge, std::int32_t step) const {
  const Image& image = images_[z(chunk)];
  const std::size_t row = z(image.place) * network_.edges.size() + z(image.by->edge[z(edge)]);
  return send_[row * z(steps_ + 1) + z(step)];
}

int StepEncoding::longer(std::int32_t step, std::int64_t rounds) const {
  if (rounds <= 1) return StepFormula::kTrue;
  const auto& of_step = longer_[z(step)];
  const auto at = static_cast<std::size_t>(rounds - 2);
  return at < of_step.size() ? of_step[at] : StepFormula::kFalse;
}

void StepEncoding::encode_rounds() {
  const std::int32_t spare = rounds_ - steps_;
  longer_.resize(z(steps_ + 1));
  std::vector<int> all;
  for (std::int32_t step = 1; step <= steps_; ++step)
    for (std::int32_t more = 0; more < spare; ++more) {
      longer_[z(step)].push_back(formula_.variable());
      if (more > 0) formula_.clause({-longer_[z(step)][z(more)], longer_[z(step)][z(more - 1)]});
      all.push_back(longer_[z(step)].back());
    }
  const auto sum = formula_.count(all, z(spare + 1));
  if (sum.size() > z(spare)) formula_.clause({-sum[z(spare)]});
}

void StepEncoding::find_windows(std::int32_t chunk) {
  const StepChunk& what = problem_.chunks[z(chunk)];
  const std::size_t first = z(images_[z(chunk)].place) * z(network_.devices);
  for (std::int32_t device = 0; device < network_.devices; ++device) {
    Window& window = windows_[first + z(device)];
    window.earliest = distances_[z(what.source)][z(device)];
    std::int32_t nearest = network_.devices;
    for (const std::int32_t target : what.targets)
      nearest = std::min(nearest, distances_[z(device)][z(target)]);
    window.latest = steps_ - nearest;
    if (device == what.source) window = {0, 0};
  }
}

void StepEncoding::encode_chunk(std::int32_t chunk) {
  find_windows(chunk);
  const StepChunk& what = problem_.chunks[z(chunk)];
  const std::size_t place = z(images_[z(chunk)].place);
  const std::size_t first = place * z(network_.devices);
  has_[(first + z(what.source)) * z(steps_ + 1)] = StepFormula::kTrue;
  for (std::int32_t device = 0; device < network_.devices; ++device) {
    const Window& window = windows_[first + z(device)];
    const bool wants = std::ranges::binary_search(what.targets, device);
    if (device == what.source) continue;
    if (wants && window.latest < window.earliest) formula_.clause({});
    for (std::int32_t step = window.earliest; step <= window.latest; ++step)
      has_[(first + z(device)) * z(steps_ + 1) + z(step)] =
          wants && step == steps_ ? StepFormula::kTrue : formula_.variable();
  }
  for (std::int32_t device = 0; device < network_.devices; ++device) {
    const Window& window = windows_[first + z(device)];
    if (device == what.source) continue;
    for (std::int32_t step = window.earliest; step <= window.latest; ++step) {
      const int before = has(chunk, device, step - 1), now = has(chunk, device, step);
      formula_.clause({-before, now});
      std::vector<int> arrivals;
      for (const std::int32_t edge : entering_[z(device)]) {
        const int there = has(chunk, network_.edges[z(edge)].from, step - 1);
        if (there == StepFormula::kFalse) continue;
        const int arrives = formula_.variable();
        send_[(place * network_.edges.size() + z(edge)) * z(steps_ + 1) + z(step)] = arrives;
        formula_.clause({-arrives, there});
        formula_.clause({-arrives, now});
        formula_.clause({-arrives, -before});
        for (const int other : arrivals) formula_.clause({-arrives, -other});
        arrivals.push_back(arrives);
      }
      arrivals.push_back(before);
      arrivals.push_back(-now);
      formula_.clause(arrivals);
    }
  }
}

void StepEncoding::order_copies(std::int32_t first, std::int32_t second) {
  int equal = StepFormula::kTrue;  // so far
  std::size_t ordered = 0;
  for (std::size_t i = 0; i < network_.edges.size(); ++i) {
    if (network_.edges[i].from != problem_.chunks[z(first)].source) continue;
    for (std::int32_t step = 1; step <= steps_; ++step) {
      const auto edge = static_cast<std::int32_t>(i);
      const int a = send(first, edge, step), b = send(second, edge, step);
      if (a == StepFormula::kFalse) continue;
      formula_.clause({-equal, a, -b});
      if (++ordered == kMostOrdered) return;
      const int still = formula_.variable();
      formula_.clause({-equal, a, b, still});
      formula_.clause({-equal, -a, -b, still});
      equal = still;
    }
  }
}

// Spare capacity of the limit's device: what its limits let pass minus what it must receive.
std::int64_t StepEncoding::slack(const StepLimit& limit) const {
  const std::int32_t device = network_.edges[z(limit.edges[0])].to;
  std::int64_t room = 0;
  for (const StepLimit& each : network_.limits) {
    if (each.edges.size() != 1) return kMostTightSlack + 1;
    if (network_.edges[z(each.edges[0])].to == device) room += chunks_in(each, rounds_);
  }
  for (const StepChunk& chunk : problem_.chunks)
    room -= std::ranges::binary_search(chunk.targets, device) ? 1 : 0;
  return room;
}

void StepEncoding::encode_limit(const StepLimit& limit, std::int32_t step) {
  std::vector<int> sends;
  for (const std::int32_t edge : limit.edges)
    for (std::size_t chunk = 0; chunk < problem_.chunks.size(); ++chunk) {
      if (images_[chunk].chunk < 0) continue;
      const int literal = send(static_cast<std::int32_t>(chunk), edge, step);
      if (literal != StepFormula::kFalse) sends.push_back(literal);
    }
  const std::int64_t longest = rounds_ - steps_ + 1;
  const auto most = chunks_in(limit, longest);
  const std::int64_t missing = slack(limit);
  const bool tight = missing <= kMostTightSlack;
  const auto reached = formula_.count(sends, static_cast<std::size_t>(most) + 1, tight);
  for (std::size_t k = 1; k <= reached.size(); ++k) {
    const std::int64_t needs = rounds_for(limit, static_cast<std::int64_t>(k));
    if (needs > rounds_for(limit, static_cast<std::int64_t>(k) - 1) && needs > 1)
      formula_.clause({-reached[k - 1], longer(step, needs)});
  }
  if (!tight) return;
  for (std::int64_t rounds = 1; rounds <= longest; ++rounds) {
    const std::int64_t least = chunks_in(limit, rounds) - missing;
    if (least <= 0) continue;
    const bool possible = least <= static_cast<std::int64_t>(reached.size());
    formula_.clause({-longer(step, rounds),
                     possible ? reached[static_cast<std::size_t>(least) - 1] : StepFormula::kFalse});
  }
}

StepSchedule StepEncoding::schedule() const {
  StepSchedule made;
  made.rounds.assign(z(steps_), 1);
  for (std::size_t i = 0; i < problem_.chunks.size(); ++i) {
    if (images_[i].chunk < 0) continue;
    for (std::size_t edge = 0; edge < network_.edges.size(); ++edge)
      for (std::int32_t step = 1; step <= steps_; ++step) {
        const int literal = send(static_cast<std::int32_t>(i), static_cast<std::int32_t>(edge), step);
        if (literal != StepFormula::kFalse && formula_.value(literal))
          made.sends.push_back({step - 1, static_cast<std::int32_t>(edge), static_cast<std::int32_t>(i)});
      }
  }
  std::ranges::sort(made.sends);
  // The rounds that the sends need; the first step gets the rest.
  for (std::int32_t step = 0; step < steps_; ++step) {
    std::vector<std::int64_t> over(network_.edges.size(), 0);
    for (const StepSend& each : made.sends)
      if (each.step == step) ++over[z(each.edge)];
    for (const StepLimit& limit : network_.limits) {
      std::int64_t chunks = 0;
      for (const std::int32_t edge : limit.edges) chunks += over[z(edge)];
      made.rounds[z(step)] =
          std::max(made.rounds[z(step)], static_cast<std::int32_t>(rounds_for(limit, chunks)));
    }
  }
  made.rounds[0] += rounds_ - std::accumulate(made.rounds.begin(), made.rounds.end(), 0);
  return made;
}

}  // namespace weft::synthesis
