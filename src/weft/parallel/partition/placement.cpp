#include "weft/parallel/partition/placement.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "weft/parallel/partition/ideals.h"
#include "weft/parallel/partition/placement_blocks.h"

namespace weft::partition {
namespace {

constexpr std::int32_t kMostPlacementIdeals = 200'000;
constexpr std::int64_t kMostPlacementValues = 16'000'000;
constexpr double kNever = std::numeric_limits<double>::infinity();
// Sums of the same times in different orders differ by up to this factor.
constexpr double kLoadSlack = 1e-9;

// best(ideal, c, a) = the minimal largest load of the ideal on at most c CPUs and a accelerators.
// Only loads up to `limit` are searched. Times only grow with a stage, so a stage above the limit
// is not extended; with a tight limit nearly all pairs of ideals are never visited.
class PlacementSearch {
 public:
  PlacementSearch(const Placement& placement, const Blocks& blocks, const Ideals& ideals)
      : placement_(placement), blocks_(blocks), ideals_(ideals) {
    widths_ = slot((placement.cpus + 1) * (placement.accelerators + 1));
    whole_.resize(slot(ideals.count()));
    for (std::int32_t ideal = 0; ideal < ideals.count(); ++ideal)
      for (const Ideals::Step& step : ideals.steps(ideal)) {
        const Blocks::Block& block = blocks.blocks[slot(step.node)];
        const Sums& from = whole_[slot(ideal)];
        whole_[slot(step.ideal)] = {from.accelerator + block.on_accelerator, from.cpu + block.on_cpu,
                                    from.bytes + block.bytes};
      }
    for (const Blocks::Block& block : blocks.blocks)
      if (block.on_accelerator > 0)
        cpu_speed_ = std::max(cpu_speed_, block.on_cpu > 0 ? block.on_accelerator / block.on_cpu : kNever);
  }

  // Whether there is a partition with at most this load; then stages() returns one of least load.
  bool find(double limit) {
    limit_ = limit;
    best_.assign(slot(ideals_.count()) * widths_, kNever);
    from_.assign(best_.size(), {});
    met_.assign(slot(ideals_.count()), -1);
    costs_.resize(slot(ideals_.count()));
    std::fill(best_.begin(), best_.begin() + static_cast<std::ptrdiff_t>(widths_), 0.0);
    for (std::int32_t ideal = 0; ideal < ideals_.all(); ++ideal)
      if (hopeful(ideal)) extend(ideal);
    return best_.back() < kNever;
  }

  std::vector<PlacementStage> stages() const {
    std::vector<PlacementStage> stages;
    std::size_t width = widths_ - 1;
    for (std::int32_t ideal = ideals_.all(); ideal != ideals_.none();) {
      const From& from = from_[slot(ideal) * widths_ + width];
      PlacementStage stage;
      stage.cpu = from.cpu;
      stage.load = from.load;
      for (const std::int32_t block : ideals_.between(from.ideal, ideal)) {
        const auto& nodes = blocks_.blocks[slot(block)].nodes;
        stage.nodes.insert(stage.nodes.end(), nodes.begin(), nodes.end());
      }
      std::ranges::sort(stage.nodes);
      stages.push_back(std::move(stage));
      width = from.width;
      ideal = from.ideal;
    }
    std::ranges::reverse(stages);
    return stages;
  }

 private:
  struct Sums {
    double accelerator = 0, cpu = 0, bytes = 0;
  };
  struct From {
    std::int32_t ideal = 0;
    std::uint32_t width = 0;
    double load = 0;
    bool cpu = false;
  };
  struct Cost {
    double sends = 0;
    bool accelerated = true;
  };

  std::size_t width(std::int32_t cpus, std::int32_t accelerators) const {
    return slot(cpus * (placement_.accelerators + 1) + accelerators);
  }

  // Prunes states that cannot be completed: the remaining devices have too little time for the
  // remaining nodes.
  bool hopeful(std::int32_t ideal) {
    const double left = whole_.back().accelerator - whole_[slot(ideal)].accelerator;
    bool any = false;
    for (std::int32_t c = 0; c <= placement_.cpus; ++c)
      for (std::int32_t a = 0; a <= placement_.accelerators; ++a) {
        double& best = best_[slot(ideal) * widths_ + width(c, a)];
        const std::int32_t cpus = placement_.cpus - c;
        const double room =
            limit_ * (placement_.accelerators - a + (cpus > 0 ? static_cast<double>(cpus) * cpu_speed_ : 0));
        if (room * (1 + kLoadSlack) < left) best = kNever;
        any = any || best < kNever;
      }
    return any;
  }

  bool inside(std::int32_t inner, std::int32_t outer, std::int32_t block) const {
    return ideals_.has(outer, block) && !ideals_.has(inner, block);
  }

  // The change of the transfer cost when `block` joins the stage between two ideals.
  double added_sends(std::int32_t inner, std::int32_t outer, std::int32_t block) const {
    double added = 0;
    const Blocks::Block& own = blocks_.blocks[slot(block)];
    for (const std::int32_t which : own.senders) {
      const Sender& sender = blocks_.senders[slot(which)];
      bool heard_inside = false, heard_outside = false;
      for (const std::int32_t reader : sender.readers)
        (inside(inner, outer, reader) ? heard_inside : heard_outside) = true;
      added += sender.cost * (int{heard_outside} - int{heard_inside});
    }
    for (const std::int32_t which : own.heard) {
      const Sender& sender = blocks_.senders[slot(which)];
      const bool own_sender = inside(inner, outer, sender.block);
      // The cost was counted for a reader outside the stage, and there may be none left; or it must
      // be counted from now on, unless another reader in the stage already receives the output.
      const bool other = std::ranges::any_of(sender.readers, [&](std::int32_t reader) {
        return reader != block && inside(inner, outer, reader) != own_sender;
      });
      if (!other) added += own_sender ? -sender.cost : sender.cost;
    }
    return added;
  }

  void extend(std::int32_t inner) {
    open_.assign(1, inner);
    costs_[slot(inner)] = {};
    for (std::size_t next = 0; next < open_.size(); ++next) {
      const std::int32_t outer = open_[next];
      const Cost cost = costs_[slot(outer)];
      for (const Ideals::Step& step : ideals_.steps(outer)) {
        if (met_[slot(step.ideal)] == inner) continue;
        met_[slot(step.ideal)] = inner;
        const Sums& to = whole_[slot(step.ideal)];
        const Sums& from = whole_[slot(inner)];
        const bool accelerated = cost.accelerated && blocks_.blocks[slot(step.node)].accelerated &&
                                 to.accelerator - from.accelerator <= limit_ &&
                                 to.bytes - from.bytes <= placement_.memory;
        const double cpu = to.cpu - from.cpu;
        if (!accelerated && (placement_.cpus == 0 || cpu > limit_)) continue;
        costs_[slot(step.ideal)] = {cost.sends + added_sends(inner, outer, step.node), accelerated};
        open_.push_back(step.ideal);
        const double load = to.accelerator - from.accelerator + costs_[slot(step.ideal)].sends;
        if (accelerated && load <= limit_) improve(inner, step.ideal, false, std::max(load, 0.0));
        if (placement_.cpus > 0 && cpu <= limit_) improve(inner, step.ideal, true, cpu);
      }
    }
  }

  void improve(std::int32_t inner, std::int32_t outer, bool cpu, double load) {
    const double* before = &best_[slot(inner) * widths_];
    double* after = &best_[slot(outer) * widths_];
    for (std::int32_t c = 0; c + (cpu ? 1 : 0) <= placement_.cpus; ++c)
      for (std::int32_t a = 0; a + (cpu ? 0 : 1) <= placement_.accelerators; ++a) {
        const std::size_t own = width(c, a);
        const std::size_t with = cpu ? width(c + 1, a) : width(c, a + 1);
        const double most = std::max(before[own], load);
        if (most >= after[with]) continue;
        after[with] = most;
        from_[slot(outer) * widths_ + with] = {inner, static_cast<std::uint32_t>(own), load, cpu};
      }
  }

  const Placement& placement_;
  const Blocks& blocks_;
  const Ideals& ideals_;
  std::size_t widths_ = 0;
  std::vector<Sums> whole_;  // by ideal
  double cpu_speed_ = 0;     // the largest ratio of accelerator time to CPU time
  double limit_ = 0;
  std::vector<double> best_;
  std::vector<From> from_;
  std::vector<std::int32_t> met_, open_;
  std::vector<Cost> costs_;  // of the stage from the ideal that is being extended
};

}  // namespace

Result<PlacementAnswer> place(Placement placement) {
  const Blocks blocks = blocks_of(placement);
  WEFT_TRY(order, topological_order(blocks.dag));
  // More devices than blocks are useless, and an ideal stores a value per number of devices.
  placement.accelerators = std::min(placement.accelerators, blocks.dag.nodes);
  placement.cpus = std::min(placement.cpus, blocks.dag.nodes);
  const std::int64_t widths = std::int64_t{placement.accelerators + 1} * (placement.cpus + 1);
  const auto most_ideals =
      static_cast<std::int32_t>(std::min<std::int64_t>(kMostPlacementIdeals, kMostPlacementValues / widths));
  const Ideals ideals = ideals_of(blocks.dag, order, most_ideals);
  if (ideals.count() * widths > kMostPlacementValues)
    return user_error(fmt::format("expected fewer devices for {} nodes, found {} accelerators and {} CPUs",
                                  placement.nodes.size(), placement.accelerators, placement.cpus));
  PlacementSearch search(placement, blocks, ideals);
  double least = 0, total = 0, most = 0;
  for (const Blocks::Block& block : blocks.blocks) {
    const double fastest = !block.accelerated    ? block.on_cpu
                           : placement.cpus == 0 ? block.on_accelerator
                                                 : std::min(block.on_accelerator, block.on_cpu);
    least = std::max(least, fastest);
    total += fastest;
    most += block.on_accelerator + block.on_cpu;
  }
  for (const Sender& sender : blocks.senders) most += sender.cost;
  PlacementAnswer answer;
  answer.ideals = ideals.count();
  answer.exact = ideals.complete();
  // A tighter limit makes the search faster; a limit that is too tight costs less than the next
  // attempt.
  constexpr double kWiden = 1.15;
  double limit = std::max(least, total / (placement.accelerators + placement.cpus)) * (1 + kLoadSlack);
  if (limit == 0) limit = most;
  while (!search.find(limit)) {
    if (limit >= most * (1 + kLoadSlack))
      return user_error("expected a split that fits the devices, found none",
                        fmt::format("{} accelerators of {:.0f} bytes, {} CPUs", placement.accelerators,
                                    placement.memory, placement.cpus));
    limit = std::min(limit * kWiden, most * (1 + 2 * kLoadSlack));
  }
  answer.stages = search.stages();
  for (const PlacementStage& stage : answer.stages) answer.cost = std::max(answer.cost, stage.load);
  return answer;
}

}  // namespace weft::partition
