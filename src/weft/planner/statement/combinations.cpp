#include "weft/planner/statement/combinations.h"

#include <fmt/format.h>

#include "weft/planner/exchange/requested_algorithms.h"
#include "weft/runtime/run/local_ranks.h"

namespace weft::planner {
namespace {

bool computes_in(const Settings& settings, plan::DType type) {
  return settings.training.precision.compute == type;
}

bool has_network(const Target& target) {
  return target.axes.front().size > 1 && target.axes.front().link.bytes_per_second > 0;
}

bool names_all_reduce(const Settings& settings) {
  const auto asked = exchange::read_requested_algorithms(settings.running.algorithm);
  return asked.ok() && exchange::find_requested(*asked, collective::Kind::all_reduce) != nullptr;
}

// Rows for training come first.
constexpr Combination kLearning[] = {
    {"sync_every", "codecs", "ranks average parameters, and codecs compress what is sent in every step",
     "remove one of them",
     [](const Settings& settings, const Target&) {
       return settings.sync_every > 1 && settings.codecs.any();
     }},
    {"sync_every", "precision = f16", "each rank that overflows skips a step on its own",
     "precision = bf16 has the range of f32",
     [](const Settings& settings, const Target&) {
       return settings.sync_every > 1 && computes_in(settings, plan::DType::f16);
     }},
    {"sync_every", "precision = f64", "ranks average parameters in f32", "precision = f32",
     [](const Settings& settings, const Target&) {
       return settings.sync_every > 1 && computes_in(settings, plan::DType::f64);
     }},
    {"gradient_delay", "sync_every", "a delayed gradient is summed in every step", "remove one of them",
     [](const Settings& settings, const Target&) { return settings.delay > 0 && settings.sync_every > 1; }},
    {"gradient_delay", "codecs",
     "the codec error is added to the next gradient, which would be one step late", "remove one of them",
     [](const Settings& settings, const Target&) { return settings.delay > 0 && settings.codecs.any(); }},
    {"gradient_delay", "precision = f16", "the loss scale may have changed when a gradient is applied",
     "precision = bf16 has the range of f32",
     [](const Settings& settings, const Target&) {
       return settings.delay > 0 && computes_in(settings, plan::DType::f16);
     }},
};

constexpr Combination kAlways[] = {
    {"parameter_servers", "a single rank", "there is nothing to sum", "leave out parameter_servers",
     [](const Settings& settings, const Target& target) {
       return settings.servers > 0 && target.devices() < 2;
     }},
    {"parameter_servers", "ON GPU", "ranks on one GPU share its memory", "leave out parameter_servers",
     [](const Settings& settings, const Target& target) { return settings.servers > 0 && target.on_gpu(); }},
    {"parameter_servers", "ranks of a launcher",
     "LOCAL starts servers as processes, but a launcher starts only ranks", "leave out parameter_servers",
     [](const Settings& settings, const Target& target) {
       return settings.servers > 0 && target.on_processors() && run::launched_ranks() > 1;
     }},
    {"parameter_servers", "a cluster without a network", "servers are hosts beside those of the cluster",
     "leave out parameter_servers",
     [](const Settings& settings, const Target& target) {
       return settings.servers > 0 && !target.runs_here() && !has_network(target);
     }},
    {"parameter_servers", "algorithm = 'all_reduce_..'", "both select the all-reduce algorithm",
     "remove one of them",
     [](const Settings& settings, const Target& target) {
       return settings.servers > 0 && target.on_processors() && names_all_reduce(settings);
     }},
    {"precision = f8", "ON GPU", "there is no f8 kernel on this device; only plans for clusters may use f8",
     "precision = bf16",
     [](const Settings& settings, const Target& target) {
       return settings.training.precision.f8_products && target.on_gpu();
     }},
};

Status check(std::span<const Combination> rows, const Settings& settings, const Target& target) {
  for (const Combination& row : rows)
    if (row.is_asked(settings, target))
      return user_error(fmt::format("{} cannot be combined with {}: {}", row.first, row.second, row.reason),
                        std::string(row.hint));
  return {};
}

}  // namespace

std::span<const Combination> refused_combinations() {
  static const std::vector<Combination> kAll = [] {
    std::vector<Combination> all(std::begin(kLearning), std::end(kLearning));
    all.insert(all.end(), std::begin(kAlways), std::end(kAlways));
    return all;
  }();
  return kAll;
}

Status check_combinations(const Settings& settings, const Target& target, bool learns) {
  if (learns) WEFT_TRY_STATUS(check(kLearning, settings, target));
  return check(kAlways, settings, target);
}

}  // namespace weft::planner
