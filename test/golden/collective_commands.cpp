// Commands for collective algorithms: parser, compiler, checker and cost.
#include <sstream>

#include <fmt/format.h>

#include "commands.h"
#include "weft/app/command/collective.h"
#include "weft/collectives/algorithm/claims.h"
#include "weft/collectives/algorithm/library.h"
#include "weft/collectives/check/check.h"
#include "weft/collectives/chunks/program_text.h"
#include "weft/collectives/compile/compile.h"
#include "weft/collectives/compile/passes.h"
#include "weft/language/complaint.h"

namespace weft::golden {
namespace {

std::string complaint(const Error& error, std::string_view text) {
  return language::complain(error, error.text != nullptr ? std::string_view(*error.text) : text);
}

collective::CompileOptions options_of(const Case& test) {
  collective::CompileOptions options;
  options.instances = static_cast<std::int32_t>(test.number("instances", 1));
  options.slots = static_cast<std::int32_t>(test.number("slots", 0));
  options.fuse = test.flag("fuse") != "no";
  return options;
}

std::string print(const session::Reply& reply) { return reply.output + reply.complaint; }

}  // namespace

std::string trace_command(const Case& test) {
  const auto algorithm = collective::parse_algorithm(test.input);
  if (!algorithm.ok()) return complaint(algorithm.error(), test.input);
  const auto reference = collective::parse_reference(fmt::format("it({})", test.flag("with")));
  if (!reference.ok()) return complaint(reference.error(), test.flag("with"));
  const auto moves = collective::trace(*algorithm, reference->arguments, collective::shipped_algorithms());
  if (!moves.ok()) return complaint(moves.error(), test.input);
  const collective::Measure measured = collective::measure(*moves);
  return fmt::format("{}steps {}, wire {}\n", collective::print(*moves), measured.steps, measured.wire);
}

std::string chunk_program_command(const Case& test) {
  const auto program = collective::parse_program(test.input);
  return program.ok() ? collective::print(*program) : complaint(program.error(), test.input);
}

std::string check_command(const Case& test) {
  const auto program = collective::parse_program(test.input);
  if (!program.ok()) return complaint(program.error(), test.input);
  const collective::Report report =
      collective::check(*program, {.slots = static_cast<std::int32_t>(test.number("slots", 0))});
  if (!report.finding) return fmt::format("ok, slots {}, small {}\n", report.slots, report.slots_small);
  return fmt::format("{}: {}\n", name(report.verdict()), collective::print(*report.finding));
}

std::string compile_command(const Case& test) {
  const auto moves = collective::parse_moves(test.input);
  if (!moves.ok()) return complaint(moves.error(), test.input);
  const std::string passes = test.flag("passes");
  if (!passes.empty()) {
    std::vector<std::string> names;
    std::istringstream stream(passes);
    for (std::string word; std::getline(stream, word, ',');) names.push_back(word);
    const std::vector<std::string_view> views(names.begin(), names.end());
    const auto text = collective::run_passes(*moves, views, options_of(test));
    return text.ok() ? *text : complaint(text.error(), test.input);
  }
  const auto program = collective::compile(*moves, options_of(test));
  return program.ok() ? collective::print(*program) : complaint(program.error(), test.input);
}

std::string cost_command(const Case& test) {
  command::CollectiveCost request;
  request.cluster = test.flag("on");
  request.sizes = test.flag("sizes");
  request.protocol = test.flag("protocol");
  request.algorithm = test.input;
  while (!request.algorithm.empty() && request.algorithm.back() == '\n') request.algorithm.pop_back();
  return print(command::run(request));
}

std::string choose_command(const Case& test) {
  command::CollectiveChoose request;
  request.collective = test.flag("collective");
  request.cluster = test.flag("on");
  request.sizes = test.flag("sizes");
  std::istringstream lines(test.input);
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) request.candidates.push_back(line);
  return print(command::run(request));
}

}  // namespace weft::golden
