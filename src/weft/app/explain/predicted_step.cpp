#include "weft/app/explain/predicted_step.h"

#include <fmt/format.h>

#include "weft/app/explain/whole.h"
#include "weft/base/units.h"
#include "weft/predict/cost/roofline.h"

namespace weft::explain {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

double fraction_of_peak(double flops, double seconds, const cluster::Cluster& cluster, plan::DType precision,
                        int devices_per_rank) {
  double peak = 0;
  for (const cluster::DeviceKind& kind : cluster.kinds)
    peak +=
        cost::peak_rate(kind.device, precision) * static_cast<double>(kind.nodes * cluster.axes.back().size);
  if (!cluster.is_mixed())
    peak = cost::peak_rate(cluster.device, precision) *
           static_cast<double>(cluster.devices() * devices_per_rank);
  return peak > 0 && seconds > 0 ? flops / (seconds * peak) : 0;
}

std::string rounded_percent(double part) {
  return part < 0.01 ? "< 1 %" : fmt::format("{:.0f} %", 100 * part);
}

std::string sent_by_axis(const std::vector<sim::AxisTraffic>& traffic) {
  std::string text;
  for (const sim::AxisTraffic& axis : traffic)
    if (axis.bytes > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", axis.axis, print_bytes(axis.bytes));
  return text;
}

Json step_json(const search::Evaluation& evaluation) {
  Json memory = Json::object(), sent = Json::object();
  for (const auto& [what, bytes] : evaluation.memory.kinds()) memory[std::string(what)] = whole(bytes);
  for (const sim::AxisTraffic& axis : evaluation.traffic) sent[axis.axis] = whole(axis.bytes);
  return {{"step_seconds", evaluation.seconds},
          {"memory_per_rank_bytes", whole(evaluation.peak_bytes)},
          {"memory", std::move(memory)},
          {"compute_seconds", evaluation.compute_seconds},
          {"communication_seconds", evaluation.communication_seconds},
          {"exposed_communication_seconds", evaluation.exposed_communication_seconds},
          {"bytes_sent_by_axis", std::move(sent)}};
}

Json reasons_json(const sim::Prediction& prediction) {
  Json sources = Json::object();
  for (std::size_t s = 0; s < cost::kSources; ++s)
    if (const double seconds = prediction.seconds_by_source[s]; seconds > 0)
      sources[std::string(name(static_cast<cost::Source>(s)))] = seconds;
  Json collectives = Json::array();
  for (const sim::EstimatedCollective& one : prediction.collectives)
    collectives.push_back({{"kind", name(one.kind)},
                           {"axis", one.axis},
                           {"bytes", one.bytes},
                           {"times", one.times},
                           {"seconds", one.price.seconds()},
                           {"algorithm", cost::short_name(one.kind, one.price)},
                           {"source", name(one.price.source)}});
  return {{"bound_by", prediction.bound},
          {"compute_seconds_by_source", std::move(sources)},
          {"collectives", std::move(collectives)}};
}

}  // namespace weft::explain
