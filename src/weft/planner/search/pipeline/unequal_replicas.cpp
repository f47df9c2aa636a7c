#include "weft/planner/search/pipeline/unequal_replicas.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "weft/base/check.h"
#include "weft/parallel/pipeline/pipelined_plan.h"
#include "weft/planner/search/pipeline/stage_devices.h"

namespace weft::search {
namespace {

using distribute::Distribution;

// The axis that slices the batch and whose devices differ.
std::optional<std::size_t> uneven_axis(const PipelineProblem& problem, const Distribution& given) {
  if (distribute::has_stage_meshes(given)) return {};  // replicas differ between stages
  for (std::size_t axis = 0; axis < given.axes.size(); ++axis) {
    const std::vector<std::string>& slice = given.axes[axis].slice;
    if (std::ranges::find(slice, problem.batch) == slice.end()) continue;
    const std::vector<cluster::Device> devices = devices_along(*problem.cluster, given.mesh, axis);
    if (std::ranges::adjacent_find(devices, std::not_equal_to(), &cluster::Device::name) != devices.end())
      return axis;
  }
  return {};
}

// Seconds of a replica by number of micro-batches: linear for large numbers.
class Pace {
 public:
  // For up to `most` micro-batches. REQUIRES: `most` is above an equal share.
  static Result<Pace> of(const PipelineProblem& problem, const Distribution& given,
                         const cluster::Device& device, std::int64_t most) {
    const std::int64_t few = given.micro_batches;
    WEFT_CHECK(few < most);
    WEFT_TRY(first, estimate_with_count(problem, given, few, &device));
    WEFT_TRY(last, estimate_with_count(problem, given, most, &device));
    Pace pace;
    pace.each_ =
        std::max(0.0, (last.priced.seconds - first.priced.seconds) / static_cast<double>(most - few));
    pace.fixed_ = first.priced.seconds - pace.each_ * static_cast<double>(few);
    // Bisects for the most that fit: more micro-batches never take less memory.
    std::int64_t too_many = last.fits ? most + 1 : most;
    pace.room_for_ = last.fits ? most : first.fits ? few : 0;
    if (!last.fits && !first.fits) too_many = few;
    while (too_many - pace.room_for_ > 1) {
      const std::int64_t middle = pace.room_for_ + (too_many - pace.room_for_) / 2;
      WEFT_TRY(tried, estimate_with_count(problem, given, middle, &device));
      (tried.fits ? pace.room_for_ : too_many) = middle;
    }
    return pace;
  }

  double seconds(std::int64_t count) const {
    if (count > room_for_) return std::numeric_limits<double>::infinity();
    return fixed_ + each_ * static_cast<double>(count);
  }

 private:
  double fixed_ = 0, each_ = 0;
  std::int64_t room_for_ = 0;
};

}  // namespace

std::vector<std::int64_t> share_out(
    std::int64_t all, std::size_t ranks,
    const std::function<double(std::size_t rank, std::int64_t count)>& seconds) {
  WEFT_CHECK(ranks > 0 && static_cast<std::int64_t>(ranks) <= all);
  // Greedy: the next one goes to the rank that would finish first. No other choice is faster.
  std::vector<std::int64_t> takes(ranks, 1);
  std::vector<double> with_one_more(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) with_one_more[rank] = seconds(rank, 2);
  for (auto given = static_cast<std::int64_t>(ranks); given < all; ++given) {
    const auto next =
        static_cast<std::size_t>(std::ranges::min_element(with_one_more) - with_one_more.begin());
    ++takes[next];
    with_one_more[next] = seconds(next, takes[next] + 1);
  }
  return takes;
}

Result<ChosenPipeline> estimate_replicas(const PipelineProblem& problem, const Distribution& given,
                                         std::size_t axis) {
  const std::vector<std::int64_t>& takes = given.axes[axis].takes;
  if (takes.size() != static_cast<std::size_t>(given.mesh.axes[axis].ranks))
    return user_error("each rank must get a number of micro-batches");
  Distribution equal = given;
  equal.axes[axis].takes.clear();
  const std::vector<cluster::Device> devices = devices_along(*problem.cluster, given.mesh, axis);
  PipelineProblem alike = problem;  // all replicas cut stages at the same places
  if (distribute::stage_axis(given)) {
    WEFT_TRY(work, work_of_parts(problem, equal));
    alike.work = std::move(work);
  }
  std::optional<ChosenPipeline> slowest;
  std::vector<Replica> replicas;
  std::map<std::pair<std::string, std::int64_t>, double> known;
  bool fits = true;
  for (std::size_t place = 0; place < takes.size(); ++place) {
    const cluster::Device* const device = devices.empty() ? nullptr : &devices[place];
    const std::string name = device == nullptr ? std::string() : device->name;
    const auto [found, is_new] = known.try_emplace({name, takes[place]}, 0.0);
    if (is_new) {
      WEFT_TRY(priced, estimate_with_count(alike, equal, takes[place], device));
      found->second = priced.priced.seconds;
      fits = fits && priced.fits;
      if (!slowest || priced.priced.seconds > slowest->priced.seconds) slowest = std::move(priced);
    }
    replicas.push_back({takes[place], name, found->second});
  }
  slowest->distribution = given;
  slowest->replicas = std::move(replicas);
  slowest->fits = fits;
  return *std::move(slowest);
}

Result<std::optional<ChosenPipeline>> with_unequal_replicas(const PipelineProblem& problem,
                                                            const Distribution& given, double beat_seconds) {
  constexpr std::int64_t kMostMicroBatches = 64;  // per replica; more hardly change the shares
  constexpr std::int64_t kMostOfEqual = 8;        // limit per replica, in equal shares
  std::optional<ChosenPipeline> best;
  const auto axis = uneven_axis(problem, given);
  if (!axis) return best;
  const std::vector<cluster::Device> devices = devices_along(*problem.cluster, given.mesh, *axis);
  std::int64_t shares = 1;  // of the batch
  for (std::size_t a = 0; a < given.axes.size(); ++a)
    if (std::ranges::find(given.axes[a].slice, problem.batch) != given.axes[a].slice.end())
      shares *= given.mesh.axes[a].ranks;
  for (std::int64_t micro = given.micro_batches; micro <= std::max(kMostMicroBatches, given.micro_batches);
       micro *= 2) {
    if (micro == 1) continue;
    if (problem.rows % (shares * micro) != 0) break;
    Distribution equal = given;
    equal.micro_batches = micro;
    const std::int64_t all = micro * given.mesh.axes[*axis].ranks;
    const std::int64_t most = std::min(all - given.mesh.axes[*axis].ranks + 1, kMostOfEqual * micro);
    std::map<std::string, Pace> paces;
    bool can_differ = true;  // not every schedule exists for every number
    for (const cluster::Device& device : devices) {
      if (!can_differ || paces.contains(device.name)) continue;
      const auto pace = Pace::of(problem, equal, device, most);
      can_differ = pace.ok();
      if (can_differ) paces.emplace(device.name, *pace);
    }
    if (!can_differ) continue;
    Distribution unequal = equal;
    unequal.axes[*axis].takes = share_out(all, devices.size(), [&](std::size_t rank, std::int64_t count) {
      return paces.at(devices[rank].name).seconds(count);
    });
    auto priced = estimate_replicas(problem, unequal, *axis);
    if (!priced.ok() || !priced->fits || priced->priced.seconds >= beat_seconds) continue;
    beat_seconds = priced->priced.seconds;
    best = *std::move(priced);
  }
  // Exchanges between replicas in every micro-batch rule out unequal numbers.
  if (best && !pipeline::distribute_pipelined(*problem.plan, best->distribution).ok()) best.reset();
  return best;
}

}  // namespace weft::search
