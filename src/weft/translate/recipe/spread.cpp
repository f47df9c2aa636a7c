#include "weft/translate/recipe/spread.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include <fmt/format.h>

namespace weft::recipe {
namespace {

using distribute::AxisUse;
using distribute::Distribution;
using distribute::IndexRoles;
using distribute::Shard;
using Names = std::vector<std::string>;

constexpr std::string_view kPlain = "one_f_one_b", kInterleaved = "interleaved_one_f_one_b";

// A degree of the recipe, or a part of one with a single use.
struct Degree {
  std::string_view name;
  std::int64_t size = 1;
  AxisUse use;
};

Names chain(std::initializer_list<Names> lists) {
  Names all;
  for (const Names& list : lists)
    for (const std::string& index : list)
      if (std::ranges::find(all, index) == all.end()) all.push_back(index);
  return all;
}

bool has(const Names& list, const std::string& index) { return std::ranges::find(list, index) != list.end(); }

Shard shard_of(int zero) {
  return zero == 0 ? Shard::nothing : zero == 3 ? Shard::parameters : Shard::optimizer;
}

// The indices that tensor parallelism slices. Key heads are included if there are fewer than the
// tensor degree.
Names tensor_list(const Recipe& recipe, const IndexRoles& roles) {
  Names further;
  for (const distribute::FurtherIndex& one : roles.further)
    if (one.beside_size < recipe.tensor) further.push_back(one.index);
  return chain({roles.model, further, recipe.sequence_parallel ? roles.sequence : Names()});
}

// Outermost first.
Result<std::vector<Degree>> degrees_of(const Recipe& recipe, const IndexRoles& roles, std::int64_t data,
                                       const cluster::Cluster& cluster, const TokenSlots& sent) {
  const auto needs = [](const Names& list, std::string_view what, std::int64_t degree) -> Status {
    if (!list.empty()) return {};
    return user_error(fmt::format("the model has no index for {} parallelism: degree {}", what, degree),
                      "use degree 1 for this model");
  };
  if (data > 1) WEFT_TRY_STATUS(needs(roles.batch, "data", data));
  if (recipe.tensor > 1) WEFT_TRY_STATUS(needs(roles.model, "tensor", recipe.tensor));
  if (recipe.context > 1) WEFT_TRY_STATUS(needs(roles.sequence, "context", recipe.context));
  if (recipe.expert > 1) WEFT_TRY_STATUS(needs(roles.expert, "expert", recipe.expert));

  // Experts are placed on the context ranks, then on the data ranks, and first on the tensor ranks if they are not
  // sliced themselves.
  std::int64_t experts = recipe.expert;
  const bool whole_experts = recipe.expert > 1 && recipe.expert_tensor == 1 && recipe.tensor > 1;
  const std::int64_t on_tensor = whole_experts ? std::gcd(experts, recipe.tensor) : 1;
  experts /= on_tensor;
  const std::int64_t on_context = std::gcd(experts, recipe.context);
  experts /= on_context;
  const std::int64_t copies = recipe.zero == 0 ? 1 : recipe.copies, sharded = data / copies;
  const std::int64_t on_data = std::gcd(experts, sharded);
  experts /= on_data;
  const std::int64_t on_copies = std::gcd(experts, copies);
  if (experts != on_copies)
    return user_error(
        fmt::format("experts are distributed over the context and data ranks, which are fewer: {} and {}",
                    recipe.expert, recipe.context * data));
  const Names batch = roles.batch.empty() ? Names() : Names{roles.batch.front()};
  const Names by_expert = chain({roles.expert, batch});
  const Shard shard = shard_of(recipe.zero);
  Names model = tensor_list(recipe, roles);
  // Ranks of a tensor-parallel group each fill the slots of their own experts from all of its tokens.
  Names own_slots = chain({roles.expert, model});
  const auto sequence =
      std::ranges::find_if(own_slots, [&](const std::string& index) { return has(roles.sequence, index); });
  own_slots.insert(sequence, sent.slots.begin(), sent.slots.end());
  const Degree by_slot{"tensor", on_tensor, {own_slots, Shard::nothing}};
  // A slice of slots is one range of experts if these ranks are the outer ones. Within one node their order does not
  // matter otherwise.
  const bool outside = on_tensor > 1 && !cluster.axes.empty() &&
                       cluster.axes.back().size % (recipe.tensor * recipe.context * on_data) == 0;
  std::vector<Degree> data_degrees = {{"data", copies / on_copies, {batch, Shard::nothing}},
                                      {"data", on_copies, {by_expert, Shard::nothing}},
                                      {"data", sharded / on_data, {batch, shard}}};
  if (outside) data_degrees.push_back(by_slot);
  data_degrees.push_back({"data", on_data, {by_expert, shard}});
  Degree stages{"pipeline", recipe.pipeline, {}};
  stages.use.stage = true;
  stages.use.chunks = static_cast<std::int32_t>(recipe.virtual_stages);
  std::vector<Degree> all;
  if (recipe.order != kPipelineInside) all.push_back(stages);
  all.insert(all.end(), data_degrees.begin(), data_degrees.end());
  if (recipe.order == kPipelineInside) all.push_back(stages);
  // Ranks of a context hold the same parameters. Launchers shard over them as over data ranks.
  all.push_back({"context", recipe.context / on_context, {roles.sequence, shard}});
  all.push_back({"context", on_context, {chain({roles.expert, sent.slots, roles.sequence}), shard}});
  // Each rank of a tensor-parallel group sends its share of what other ranks' experts get.
  if (recipe.expert > on_tensor) model = chain({model, sent.widths});
  all.push_back({"tensor", recipe.tensor / on_tensor, {model, Shard::nothing}});
  if (!outside) all.push_back(by_slot);
  std::erase_if(all, [](const Degree& one) { return one.size == 1; });
  return all;
}

struct Laid {
  std::size_t axis, degree;
  std::int64_t size;
};

// Innermost first.
Result<std::vector<Laid>> lay(const std::vector<Degree>& degrees, const cluster::Cluster& cluster) {
  std::vector<Laid> laid;
  std::size_t axis = cluster.axes.size();
  std::int64_t room = 1;
  for (std::size_t d = degrees.size(); d-- > 0;) {
    std::int64_t left = degrees[d].size;
    while (left > 1) {
      while (room == 1 && axis > 0) room = cluster.axes[--axis].size;
      const std::int64_t part = std::gcd(left, room);
      if (part == 1 || (part < left && part < room))
        return user_error(fmt::format("{} is not divisible by {}={}: {}", degrees[d].name,
                                      cluster.axes[axis].name, cluster.axes[axis].size, degrees[d].size),
                          "a degree within a node divides its devices");
      laid.push_back({axis, d, part});
      left /= part;
      room /= part;
    }
  }
  return laid;
}

// The same devices, with the stages' factor of an inner axis moved to the next outer axis.
std::optional<cluster::Cluster> with_stages_outside(const cluster::Cluster& cluster,
                                                    const std::vector<Degree>& degrees,
                                                    const std::vector<Laid>& laid) {
  std::vector<Laid> stages;
  for (const Laid& one : laid)
    if (degrees[one.degree].use.stage) stages.push_back(one);
  if (stages.size() < 2) return std::nullopt;
  cluster::Cluster moved = cluster;
  for (std::size_t i = 0; i + 1 < stages.size(); ++i) {
    moved.axes[stages[i].axis].size /= stages[i].size;
    moved.axes[stages.back().axis].size *= stages[i].size;
  }
  return moved;
}

// The same devices, with the experts' ranks on the outer axis alone: launchers exchange tokens among all of them at once.
// A plan for an inner and an outer axis would exchange them once per axis, and once more to restore their order.
std::optional<cluster::Cluster> with_experts_outside(const cluster::Cluster& cluster, const IndexRoles& roles,
                                                     const std::vector<Degree>& degrees,
                                                     const std::vector<Laid>& laid) {
  const auto of_experts = [&](const Laid& one) {
    const Names& slice = degrees[one.degree].use.slice;
    return !slice.empty() && has(roles.expert, slice.front()) && has(roles.batch, slice.back());
  };
  const std::size_t inner = cluster.axes.size() - 1;
  if (inner == 0 || cluster.is_mixed()) return std::nullopt;  // kinds of devices are counted by node
  std::int64_t outside = 1;
  bool on_inner = false, on_outer = false;
  for (const Laid& one : laid) {  // innermost first
    on_inner |= one.axis == inner && of_experts(one);
    on_outer |= one.axis + 1 == inner && of_experts(one);
    if (on_inner && one.axis == inner) outside *= one.size;
  }
  if (!on_inner || !on_outer) return std::nullopt;
  cluster::Cluster moved = cluster;
  moved.axes[inner].size /= outside;
  moved.axes[inner - 1].size *= outside;
  moved.axes[inner - 1].per_node = outside;
  return moved;
}

train::Recompute recompute_of(Recompute recompute) {
  return {
      .layers = recompute == Recompute::full, .selective = recompute == Recompute::selective, .names = {}};
}

// Launchers recompute whole layers; they cannot express named values.
Recompute recompute_from(const train::Recompute& what, std::vector<std::string>& lost) {
  const Recompute found = what.layers      ? Recompute::full
                          : what.selective ? Recompute::selective
                                           : Recompute::none;
  if (recompute_of(found) != what)
    lost.push_back(fmt::format("recompute {}: replaced by {}", train::print(what), name(found)));
  return found;
}

void say_what_is_not_priced(const Recipe& recipe, std::vector<std::string>& notes) {
  if (recipe.offload_parameters)
    notes.push_back("offloaded parameters are not estimated: they are counted in device memory");
}

}  // namespace

Result<SpreadRecipe> spread(const Recipe& recipe, const IndexRoles& roles, const cluster::Cluster& cluster,
                            const TokenSlots& sent) {
  Recipe known = recipe;
  known.devices = cluster.devices();
  SpreadRecipe made;
  made.cluster = cluster;
  WEFT_TRY(degrees, degrees_of(recipe, roles, std::max<std::int64_t>(known.data_degree(), 1), cluster, sent));
  WEFT_TRY(laid, lay(degrees, cluster));
  if (auto moved = with_stages_outside(cluster, degrees, laid)) {
    made.cluster = std::move(*moved);
    WEFT_TRY(again, lay(degrees, made.cluster));
    laid = std::move(again);
    made.notes.push_back(
        "some stage boundaries are within nodes and some across: all are estimated as across");
  }
  if (auto moved = with_experts_outside(made.cluster, roles, degrees, laid)) {
    made.cluster = std::move(*moved);
    WEFT_TRY(again, lay(degrees, made.cluster));
    laid = std::move(again);
  }
  Distribution& distribution = made.distribution;
  for (std::size_t a = 0; a < made.cluster.axes.size(); ++a) {
    std::vector<Laid> here;
    for (std::size_t l = laid.size(); l-- > 0;) {
      if (laid[l].axis != a) continue;
      // Adjacent axes with the same use are merged.
      if (!here.empty() && degrees[here.back().degree].use == degrees[laid[l].degree].use)
        here.back().size *= laid[l].size;
      else
        here.push_back(laid[l]);
    }
    char letter = 'a';
    for (const Laid& one : here) {
      const std::string& axis = made.cluster.axes[a].name;
      distribution.mesh.axes.push_back({here.size() > 1 ? fmt::format("{}_{}", axis, letter++) : axis,
                                        static_cast<std::int32_t>(one.size)});
      distribution.axes.push_back(degrees[one.degree].use);
    }
  }
  if (distribution.mesh.axes.empty()) {
    distribution.mesh.axes.push_back({made.cluster.axes.back().name, 1});
    distribution.axes.emplace_back();
  }
  distribution.micro_batches = std::max<std::int64_t>(known.micro_batches(), 1);
  if (recipe.pipeline > 1)
    distribution.schedule = !recipe.schedule.empty()    ? std::string_view(recipe.schedule)
                            : recipe.virtual_stages > 1 ? kInterleaved
                                                        : kPlain;
  distribution.recompute = recompute_of(recipe.recompute);
  distribution.offload = recipe.offload_optimizer;
  say_what_is_not_priced(recipe, made.notes);
  if (const std::int64_t per_node = cluster.axes.back().size; recipe.tensor > per_node)
    made.notes.push_back(
        fmt::format("tensor parallelism {} crosses nodes of {}: every layer waits for the network",
                    recipe.tensor, per_node));
  return made;
}

namespace {

int zero_of(Shard shard, const Recipe& like) {
  return shard == Shard::parameters ? 3 : like.zero == 2 ? 2 : 1;
}

}  // namespace

GatheredRecipe gather(const Distribution& distribution, const IndexRoles& roles, const Recipe& like) {
  GatheredRecipe made{like, {}};
  Recipe& recipe = made.recipe;
  recipe.devices = distribution.mesh.ranks();
  recipe.tensor = recipe.pipeline = recipe.context = recipe.expert = recipe.virtual_stages = 1;
  recipe.data = recipe.copies = 1;
  recipe.expert_tensor = 0;
  recipe.zero = 0;
  recipe.sequence_parallel = false;
  recipe.recompute = recompute_from(distribution.recompute, made.lost);
  recipe.recompute_layers = 0;
  recipe.schedule.clear();
  recipe.offload_optimizer = distribution.offload;
  recipe.offload_parameters = false;
  const auto lose = [&](std::string what) { made.lost.push_back(std::move(what)); };
  // The use of an axis. In the usual order, inner uses have larger values.
  enum class Place { stage, data, context, tensor };
  std::vector<Place> places;
  std::int64_t whole_copies = 1;
  std::string whole_contexts;  // an axis of context ranks that shard nothing
  Names further;
  for (const distribute::FurtherIndex& one : roles.further) further.push_back(one.index);
  for (std::size_t a = 0; a < distribution.axes.size(); ++a) {
    const AxisUse& use = distribution.axes[a];
    const std::int64_t ranks = distribution.mesh.axes[a].ranks;
    const std::string axis = fmt::format("{}={}", distribution.mesh.axes[a].name, ranks);
    if (ranks == 1) continue;
    if (!use.in_stages.empty()) lose(fmt::format("{}: separate meshes for some stages", axis));
    if (use.stage) {
      recipe.pipeline *= ranks;
      recipe.virtual_stages = use.chunks;
      places.push_back(Place::stage);
      continue;
    }
    const std::string first = use.slice.empty() ? std::string() : use.slice.front();
    const bool with_batch = !roles.batch.empty() && has(use.slice, roles.batch.front());
    const bool by_expert = has(roles.expert, first);
    if (has(roles.batch, first) || (by_expert && with_batch)) {
      recipe.data *= ranks;
      if (by_expert) recipe.expert *= ranks;
      if (use.shard == Shard::nothing)
        whole_copies *= ranks;
      else
        recipe.zero = std::max(recipe.zero, zero_of(use.shard, like));
      places.push_back(Place::data);
      continue;
    }
    const bool by_model = has(roles.model, first) || has(further, first);
    const auto slices = [&](const Names& list) {
      return std::ranges::any_of(use.slice, [&](const std::string& index) { return has(list, index); });
    };
    // Experts on context ranks: x, p, s. On tensor ranks: x, h, f, v, p, s.
    const bool by_context = !by_model && (by_expert ? slices(roles.sequence) && !slices(roles.model)
                                                    : has(roles.sequence, first));
    if (use.shard != Shard::nothing && !by_context)
      lose(fmt::format("shard {} on {}, where batches are not sliced", name(use.shard), axis));
    if (!by_context && (by_expert || by_model)) {
      recipe.tensor *= ranks;
      if (by_expert) {
        recipe.expert *= ranks;
        recipe.expert_tensor = 1;
      }
      recipe.sequence_parallel = slices(roles.sequence);
      places.push_back(Place::tensor);
    } else if (by_context) {
      recipe.context *= ranks;
      if (by_expert) recipe.expert *= ranks;
      if (use.shard != Shard::nothing)
        recipe.zero = std::max(recipe.zero, zero_of(use.shard, like));
      else
        whole_contexts = axis;
      places.push_back(Place::context);
    } else {
      recipe.data *= ranks;
      whole_copies *= ranks;
      lose(fmt::format("{} slices no index that recipes can slice: treated as data parallel", axis));
      places.push_back(Place::data);
    }
  }
  if (recipe.zero > 0) recipe.copies = whole_copies;
  if (recipe.zero > 0 && !whole_contexts.empty())
    lose(fmt::format("{} shards nothing: context ranks shard as data ranks do", whole_contexts));
  recipe.order = kUsualOrder;
  if (!std::ranges::is_sorted(places)) {
    std::vector<Place> inside = places;
    const auto first_stage = std::ranges::find(inside, Place::stage);
    if (first_stage != inside.end()) {
      inside.erase(first_stage);
      const auto after = std::ranges::find_if(inside, [](Place place) { return place > Place::data; });
      inside.insert(after, Place::data);
    }
    const bool stages_inside = std::ranges::is_sorted(inside) &&
                               std::ranges::count(places, Place::stage) == 1 &&
                               std::ranges::none_of(std::ranges::find(places, Place::stage), places.end(),
                                                    [](Place place) { return place == Place::data; });
    if (stages_inside)
      recipe.order = kPipelineInside;
    else
      lose(fmt::format("the order of axes in {}", print(distribution.mesh)));
  }
  if (!distribution.exceptions.empty())
    lose(fmt::format("{} tensors with another sharding, such as {}", distribution.exceptions.size(),
                     distribution.exceptions.front().tensor));
  if (!distribution.schedule.empty() && distribution.schedule != kPlain &&
      distribution.schedule != kInterleaved && recipe.pipeline > 1) {
    if (distribution.schedule == kZeroBubble)
      recipe.schedule = kZeroBubble;
    else
      lose(fmt::format("schedule {}: replaced by {}", distribution.schedule,
                       recipe.virtual_stages > 1 ? kInterleaved : kPlain));
  }
  if (recipe.global_batch > 0) {
    const std::int64_t at_once = recipe.data * distribution.micro_batches;
    if (recipe.global_batch % at_once != 0)
      lose(fmt::format("micro-batches of unequal size: {} and {}", distribution.micro_batches,
                       recipe.global_batch));
    recipe.micro_batch = std::max<std::int64_t>(recipe.global_batch / at_once, 1);
  }
  return made;
}

}  // namespace weft::recipe
