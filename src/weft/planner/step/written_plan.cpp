#include "weft/planner/step/written_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/base/number.h"
#include "weft/language/print.h"
#include "weft/parallel/distribute/delayed.h"
#include "weft/parallel/distribute/feedback.h"
#include "weft/parallel/distribute/trace_origins.h"
#include "weft/parallel/pipeline/pipelined_plan.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/spmd/layouts.h"

namespace weft::planner {
namespace {

using plan::NodeId;
using plan::NodeView;

constexpr std::string_view kMesh = "# mesh: ", kModel = "# model: ", kPlace = "  # place ";
constexpr std::string_view kDistribution = "distribution = '";

template <class Map>
std::vector<std::string_view> names_of(const Map& map) {
  std::vector<std::string_view> names;
  for (const auto& [name, unused] : map) names.push_back(name);
  return names;
}

// Tensors that only the distributed plan has: error feedback of codecs, and delayed gradients.
std::set<std::string_view> kept_by_plan(const plan::Graph& written) {
  std::set<std::string_view> names;
  for (const distribute::Feedback& lost : distribute::find_feedback(written)) names.insert(lost.name);
  for (const distribute::Delayed& late : distribute::find_delayed(written)) names.insert(late.name);
  return names;
}

// A different size means a different model, against which a proof is meaningless.
Status check_sources(const plan::Graph& written, const plan::Graph& one_device) {
  const std::set<std::string_view> own = kept_by_plan(written);
  const auto known = distribute::sources_of(one_device);
  for (const auto& [name, id] : distribute::sources_of(written)) {
    const NodeView node = written.view(id);
    const auto found = known.find(name);
    if (found == known.end() && own.contains(name)) continue;
    if (found == known.end() || written.node(id).op != one_device.node(found->second).op)
      return user_error(
          fmt::format("the plan has {} {}, which the model does not have", node.op().name(), name),
          did_you_mean(name, names_of(known)));
    const std::string has = print(node.result_type(0), written.symbols()),
                      wants = print(one_device.type(one_device.result(found->second)), one_device.symbols());
    if (has != wants)
      return user_error(
          fmt::format("{} {} is {} in the model, {} in the plan", node.op().name(), name, wants, has),
          "give the model the sizes of the plan: --model \"TRAIN m WITH (b = 64)\"");
  }
  return {};
}

Status check_outputs(const plan::Graph& written, const plan::Graph& one_device) {
  const std::set<std::string_view> own = kept_by_plan(written);
  std::map<std::string_view, bool> wanted;
  for (const plan::Output& output : one_device.outputs()) wanted[one_device.text(output.name)] = false;
  for (const plan::Output& output : written.outputs()) {
    const std::string_view name = written.text(output.name);
    const auto found = wanted.find(name);
    if (found == wanted.end() && own.contains(written.updated(output))) continue;
    if (found == wanted.end())
      return user_error(
          fmt::format("the plan returns {}, which the model does not", written.text(output.name)),
          did_you_mean(written.text(output.name), names_of(wanted)));
    found->second = true;
  }
  for (const auto& [name, returned] : wanted)
    if (!returned)
      return user_error(fmt::format("the model returns {}, which the plan does not", name),
                        "a plan must return every output of the model");
  return {};
}

// Appends to the line of each node its place along the path of a micro-batch.
std::string with_places(std::string_view text, std::span<const std::int32_t> places) {
  std::string said;
  std::size_t node = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    said += line;
    if (line.starts_with('%') && node < places.size()) {
      if (places[node] >= 0) said += fmt::format("{}{}", kPlace, places[node]);
      ++node;
    }
    said += '\n';
    begin = end + 1;
  }
  return said;
}

// By node: the place on its line; -1 if there is none.
Result<std::vector<std::int32_t>> read_places(std::string_view text) {
  constexpr std::string_view kWord = "# place";
  std::vector<std::int32_t> places;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    const std::size_t first = line.find_first_not_of(" \t");
    if (first != std::string_view::npos && line[first] == '%') {
      places.push_back(-1);
      if (const std::size_t at = line.rfind(kWord); at != std::string_view::npos) {
        std::string_view number = line.substr(at + kWord.size());
        number.remove_prefix(std::min(number.find_first_not_of(' '), number.size()));
        number = number.substr(0, number.find_last_not_of(" \t\r") + 1);
        const auto place = read_number<std::int32_t>(number, 0);
        places.back() = place.value_or(-1);
        if (!place)
          return user_error(
              fmt::format("expected the number of a place, found '{}'", number), "for example: # place 1",
              Span{static_cast<std::uint32_t>(begin + at), static_cast<std::uint32_t>(end - begin - at)});
      }
    }
    begin = end + 1;
  }
  return places;
}

}  // namespace

std::string print_written(const distribute::DistributedPlan& plan, const Prepared& prepared) {
  std::vector<std::string> with;
  for (const language::BoundSize& size : prepared.sizes)
    with.push_back(fmt::format("{} = {}", language::print_name(size.name), size.size));
  const auto of_the_model = [](const SettingSpec& spec) { return spec.does_decide(Decides::model); };
  for (std::string& changed : print_changed(prepared.settings, of_the_model))
    with.push_back(std::move(changed));
  if (plan.time)
    with.push_back(fmt::format("{}{}'", kDistribution, distribute::print(plan.time->distribution)));
  const std::string text = plan::print(plan.graph);
  return fmt::format("{}{}\n{}{} {}{}\n{}", kMesh, print(plan.mesh), kModel,
                     prepared.trains() ? "TRAIN" : "INFER", language::print_name(prepared.run->model.text),
                     with.empty() ? std::string() : fmt::format(" WITH ({})", fmt::join(with, ", ")),
                     plan.time ? with_places(text, plan.time->position) : text);
}

bool is_cut_in_time(const PlanHead& head) {
  const std::size_t begin = head.model.find(kDistribution);
  if (begin == std::string::npos) return false;
  const std::string_view rest = std::string_view(head.model).substr(begin + kDistribution.size());
  const auto read = distribute::read_distribution(rest.substr(0, rest.find('\'')));
  return read.ok() && distribute::is_pipelined(*read);
}

PlanHead read_head(std::string_view text) {
  PlanHead head;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with(kMesh)) head.mesh = line.substr(kMesh.size());
    if (line.starts_with(kModel)) head.model = line.substr(kModel.size());
    if (!line.empty() && !line.starts_with('#')) break;
  }
  return head;
}

bool is_plan_text(std::string_view text) {
  while (!text.empty()) {
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) return false;
    text.remove_prefix(first);
    if (!text.starts_with('#')) return text.starts_with("plan ");
    text.remove_prefix(std::min(text.find('\n'), text.size()));
  }
  return false;
}

Result<distribute::DistributedPlan> read_written(std::string_view text, const plan::Mesh& mesh,
                                                 const plan::Graph& one_device,
                                                 const std::optional<distribute::Distribution>& in_time) {
  WEFT_TRY(graph, plan::read(text, ops::all()));
  WEFT_TRY_STATUS(check_sources(graph, one_device));
  WEFT_TRY_STATUS(check_outputs(graph, one_device));
  WEFT_TRY(layouts, spmd::infer_layouts(graph, mesh));
  WEFT_TRY(origins, distribute::trace_origins(one_device, graph));
  distribute::DistributedPlan plan{.graph = std::move(graph),
                                   .mesh = mesh,
                                   .layouts = std::move(layouts),
                                   .opened = std::move(origins.opened),
                                   .origin = std::move(origins.origin),
                                   .own = std::move(origins.own)};
  if (!in_time) return plan;
  WEFT_TRY(places, read_places(text));
  plan.time = distribute::PipelineInfo{*in_time, std::move(places)};
  WEFT_TRY_STATUS(pipeline::take_places(plan));
  return plan;
}

}  // namespace weft::planner
