// weft collective check: one line per program.
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/command/collective.h"
#include "weft/app/explain/lines.h"
#include "weft/app/session/reply.h"
#include "weft/base/nearest.h"
#include "weft/base/units.h"
#include "weft/collectives/check/check.h"
#include "weft/collectives/one_sided/overwritten_input.h"
#include "weft/formats/collective_source.h"
#include "weft/formats/msccl_target.h"

namespace weft::command {
namespace {

using collective::Verdict;

struct Judged {
  std::string program;
  bool unreadable = false;  // the file could not be read
  collective::Finding finding;
  std::string collective = "custom";
  std::int32_t ranks = 0;
  std::int32_t slots = 0, slots_small = 0;
  std::vector<std::string> notes;  // remarks that are not errors
};

// Empty if no target was requested, or for MSCCL++.
Result<std::optional<formats::Target>> named_target(const std::string& name) {
  const auto target = formats::find_target(name);
  if (target || name.empty() || name == "mscclpp") return target;
  constexpr std::string_view kTargets[] = {"msccl", "azure", "rccl", "mscclpp"};
  const std::string hint = did_you_mean(name, kTargets);
  return user_error(fmt::format("unknown target: {}", name),
                    hint.empty() ? "msccl, azure, rccl or mscclpp" : hint);
}

void refuse(Judged& judged, Verdict verdict, std::string text) {
  judged.finding = {verdict, {}, std::move(text)};
}

void take(Judged& judged, const collective::Report& report) {
  judged.slots = report.slots;
  judged.slots_small = report.slots_small;
  if (report.finding) judged.finding = *report.finding;
}

void judge_program(Judged& judged, const formats::CollectiveSource& source,
                   std::optional<formats::Target> target, const collective::CheckOptions& options) {
  const collective::Program& program = source.program->program;
  take(judged, collective::check(program, options));
  if (judged.finding.verdict != Verdict::ok) return;
  judged.notes = source.program->notes;
  if (const auto overwritten = collective::overwritten_input(program))
    judged.notes.push_back(print(*overwritten));
  if (target) {
    const auto limits = source.is_xml ? formats::check_target(*source.program, *target)
                                      : formats::check_target(program, *target);
    if (!limits.empty()) {
      judged.finding = {Verdict::malformed, limits.front().where, limits.front().text};
      return;
    }
  }
  const formats::Target runtime = target.value_or(formats::Target::msccl);
  const auto bytes = formats::hang_size(program, judged.slots, judged.slots_small, runtime);
  if (!bytes) return;
  const std::string text = fmt::format(
      "a connection needs {} slots; {} has {} with {}: it deadlocks {}", judged.slots, formats::name(runtime),
      formats::fifo_slots(program.protocol, runtime), name(program.protocol),
      *bytes == 0 ? "at any size" : "from messages of " + print_bytes(static_cast<double>(*bytes)));
  // A target named by the user must be able to run the program.
  if (target)
    refuse(judged, Verdict::deadlock, text);
  else
    judged.notes.push_back(text);
}

Judged judge(const std::string& reference, const CollectiveCheck& request,
             std::optional<formats::Target> target) {
  Judged judged;
  judged.program = reference;
  Result<formats::CollectiveSource> read = formats::read_collective(reference, {.effort = request.effort});
  if (!read.ok()) {
    judged.unreadable = read.error().fault == Fault::world;
    refuse(judged, Verdict::malformed, read.error().message);
    if (read.error().hint.find("--effort") != std::string::npos) judged.notes.push_back(read.error().hint);
    return judged;
  }
  formats::CollectiveSource& source = *read;
  if (const Status held = formats::check_as(source, request.as); !held.ok()) {
    refuse(judged, Verdict::malformed, held.error().message);
    return judged;
  }
  judged.collective = field_name(source.collective().kind);
  judged.ranks = source.collective().ranks;
  const collective::CheckOptions options{.slots = request.slots};
  if (source.moves) {
    // Checks the program that the algorithm compiles to.
    Result<collective::Program> compiled = formats::to_program(source);
    if (!compiled.ok()) {
      refuse(judged, Verdict::wrong_result, compiled.error().message);
      return judged;
    }
    source.program.emplace().program = std::move(*compiled);
  }
  if (source.program) {
    if (request.target == "mscclpp")
      refuse(judged, Verdict::malformed, "MSCCL++ runs plans in JSON; weft collective convert writes one");
    else
      judge_program(judged, source, target, options);
  } else {
    if (target) {
      refuse(judged, Verdict::malformed, fmt::format("{} runs XML; this is an MSCCL++ plan", request.target));
      return judged;
    }
    take(judged, collective::check(*source.one_sided));
    if (judged.finding.verdict == Verdict::ok)
      if (const auto overwritten = collective::overwritten_input(*source.one_sided))
        judged.notes.push_back(print(*overwritten));
    if (judged.finding.verdict == Verdict::ok && request.target == "mscclpp")
      if (const Status fits = collective::check_limits(*source.one_sided); !fits.ok())
        refuse(judged, Verdict::malformed, fits.error().message);
  }
  return judged;
}

std::string_view word(const Judged& judged) {
  return judged.unreadable ? "unreadable" : name(judged.finding.verdict);
}

std::string line(const Judged& judged) {
  if (judged.finding.verdict == Verdict::ok)
    return fmt::format("{}: ok ({}, {} ranks, slots {})\n", judged.program, judged.collective, judged.ranks,
                       judged.slots);
  return fmt::format("{}: {}: {}\n", judged.program, word(judged), print(judged.finding));
}

nlohmann::ordered_json to_json(const Judged& judged) {
  nlohmann::ordered_json json;
  json["file"] = judged.program;
  json["verdict"] = word(judged);
  json["collective"] = judged.collective;
  json["ranks"] = judged.ranks;
  if (judged.finding.verdict == Verdict::ok) {
    json["slots"] = judged.slots;
    json["slots_small"] = judged.slots_small;
  } else {
    const auto known = [](std::int32_t number) {
      return number < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(number);
    };
    json["gpu"] = known(judged.finding.where.rank);
    json["tb"] = known(judged.finding.where.block);
    json["step"] = known(judged.finding.where.step);
    json["text"] = judged.finding.text;
  }
  json["notes"] = judged.notes;
  return json;
}

}  // namespace

session::Reply run(const CollectiveCheck& request) {
  const auto target = named_target(request.target);
  if (!target.ok()) return session::complain(target.error());
  session::Reply reply;
  auto all = nlohmann::ordered_json::array();
  for (const std::string& program : request.programs) {
    const Judged judged = judge(program, request, *target);
    if (judged.unreadable)
      reply.exit_code = session::ExitCode::environment_error;
    else if (judged.finding.verdict != Verdict::ok && reply.exit_code == session::ExitCode::ok)
      reply.exit_code = session::ExitCode::user_error;
    if (request.format == session::Format::json) {
      all.push_back(to_json(judged));
      continue;
    }
    reply.output += explain::wrap(line(judged), request.width);
    for (const std::string& note : judged.notes)
      reply.complaint += explain::wrap(fmt::format("{}: note: {}", program, note), request.width);
  }
  if (request.format == session::Format::json)
    reply.output = all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  return reply;
}

}  // namespace weft::command
