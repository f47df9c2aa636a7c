#include "weft/session/collective_source.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "weft/base/file.h"
#include "weft/base/letters.h"
#include "weft/base/nearest.h"
#include "weft/collective/library.h"
#include "weft/collective/program_text.h"
#include "weft/collective/recover_moves.h"
#include "weft/collective/restate.h"
#include "weft/formats/mscclpp_json.h"
#include "weft/language/complaint.h"

namespace weft::session {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{256} << 20;  // of a file

bool is_file(const std::string& path) {
  std::error_code unused;
  return std::filesystem::is_regular_file(path, unused);
}

// "ring.algorithm(ranks=8)" -> ring.algorithm and (ranks=8), where that is a file.
std::pair<std::string, std::string> split_parameters(std::string_view reference) {
  std::string path(reference);
  if (is_file(path) || path.empty() || path.back() != ')') return {path, ""};
  const std::size_t paren = path.find('(');
  if (paren == std::string::npos) return {path, ""};
  return {path.substr(0, paren), path.substr(paren)};
}

// The first word of a text, its blanks and comments skipped; a sign where it begins with one.
std::string first_word(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (text.substr(at).starts_with("--")) {
      at = std::min(text.find('\n', at), text.size());
    } else if (static_cast<unsigned char>(text[at]) <= ' ') {
      ++at;
    } else {
      break;
    }
  }
  std::size_t end = at;
  while (end < text.size() && (std::isalpha(static_cast<unsigned char>(text[end])) != 0)) ++end;
  if (at == text.size()) return "\n";  // nothing but blanks
  return lower(text.substr(at, std::max<std::size_t>(end - at, 1)));
}

Result<CollectiveSource> from_algorithm(const NamedAlgorithm& named) {
  WEFT_TRY(moves, collective::trace(named.algorithm, named.arguments, collective::shipped_algorithms()));
  CollectiveSource source;
  source.moves = std::move(moves);
  return source;
}

Error with_text(Error error, const std::string& text) {
  if (error.span.known() && error.text == nullptr) error.text = std::make_shared<const std::string>(text);
  return error;
}

Result<CollectiveSource> from_text(const std::string& text, const std::string& path,
                                   const std::string& parameters, formats::XmlOperands operands) {
  CollectiveSource source;
  source.text = text;
  const std::string word = first_word(text);
  if (word == "algorithm") {
    auto algorithm = collective::parse_algorithm(text);
    if (!algorithm.ok()) return with_text(algorithm.error(), text);
    WEFT_TRY(reference, collective::parse_reference(algorithm->name() + parameters));
    return from_algorithm({std::move(*algorithm), std::move(reference.arguments)});
  }
  if (!parameters.empty())
    return user_error(fmt::format("{} takes no parameters: {}", path, parameters),
                      "only an algorithm has parameters");
  if (word == "<") {
    WEFT_TRY(program, formats::read_msccl_xml(text, {.operands = operands}));
    source.program = std::move(program);
    source.is_xml = true;
  } else if (word == "{") {
    WEFT_TRY(plan, formats::read_mscclpp_json(text));
    source.one_sided = std::move(plan);
  } else if (word == "program") {
    auto program = collective::parse_program(text);
    if (!program.ok()) return with_text(program.error(), text);
    source.program.emplace().program = std::move(*program);
  } else if (word == "moves") {
    auto moves = collective::parse_moves(text);
    if (!moves.ok()) return with_text(moves.error(), text);
    source.moves = std::move(*moves);
  } else {
    const bool readable = std::isprint(static_cast<unsigned char>(word.front())) != 0;
    return user_error(
        fmt::format("{} is no collective program{}", path,
                    readable ? fmt::format(": it begins with '{}'", word) : ""),
        "MSCCL XML begins with <algo, an MSCCL++ plan with {, Weft's texts with PROGRAM, MOVES or ALGORITHM");
  }
  return source;
}

}  // namespace

const collective::Collective& CollectiveSource::collective() const {
  if (program) return program->program.collective;
  return one_sided ? one_sided->collective : moves->collective;
}

Result<std::optional<NamedAlgorithm>> find_named_algorithm(std::string_view reference) {
  const auto [path, parameters] = split_parameters(reference);
  if (is_file(path)) {
    WEFT_TRY(text, read_file(path, kMostBytes));
    if (first_word(text) != "algorithm") return std::optional<NamedAlgorithm>{};
    auto algorithm = collective::parse_algorithm(text);
    if (!algorithm.ok()) return with_text(algorithm.error(), text);
    WEFT_TRY(given, collective::parse_reference(algorithm->name() + parameters));
    return std::optional(NamedAlgorithm{std::move(*algorithm), std::move(given.arguments)});
  }
  // Something with a slash or a dot before any parenthesis was meant to be a file.
  if (path.substr(0, path.find('(')).find_first_of("/.") != std::string::npos) {
    WEFT_TRY(text, read_file(path, kMostBytes));
    return std::optional<NamedAlgorithm>{};
  }
  auto named = collective::parse_reference(reference);
  if (!named.ok()) return with_text(named.error(), std::string(reference));
  WEFT_TRY(algorithm, collective::find_algorithm(collective::shipped_algorithms(), named->name));
  return std::optional(NamedAlgorithm{std::move(algorithm), std::move(named->arguments)});
}

Result<CollectiveSource> read_collective(std::string_view reference, formats::XmlOperands operands) {
  const auto [path, parameters] = split_parameters(reference);
  if (is_file(path)) {
    WEFT_TRY(text, read_file(path, kMostBytes));
    return from_text(text, path, parameters, operands);
  }
  WEFT_TRY(named, find_named_algorithm(reference));
  if (!named) return world_error(fmt::format("cannot read {}", reference));
  return from_algorithm(*named);
}

Status hold_to(CollectiveSource& source, std::string_view as) {
  if (as.empty()) return {};
  if (source.moves)
    return user_error("an algorithm says itself what it computes", "--as is for programs read from files");
  std::vector<std::int32_t> inputs, outputs;
  const auto add = [&](const auto& ranks) {
    for (const auto& rank : ranks) {
      inputs.push_back(rank.input_chunks);
      outputs.push_back(rank.output_chunks);
    }
  };
  if (source.program)
    add(source.program->program.ranks);
  else
    add(source.one_sided->ranks);
  WEFT_TRY(restated, collective::restate(as, inputs, outputs));
  (source.program ? source.program->program.collective : source.one_sided->collective) = std::move(restated);
  return {};
}

Result<collective::Program> to_program(const CollectiveSource& source,
                                       const collective::CompileOptions& options) {
  if (source.program) return source.program->program;
  if (source.moves) return collective::compile(*source.moves, options);
  if (const auto report = collective::check(*source.one_sided); report.finding)
    return user_error(
        fmt::format("the plan is wrong ({}): {}{}{}", name(report.verdict()), print(report.finding->where),
                    report.finding->where.rank < 0 ? "" : ": ", report.finding->text),
        "weft collective check says more");
  const collective::Actions actions = collective::to_actions(*source.one_sided, collective::Grain::chunk);
  WEFT_TRY(moves, collective::recover_moves(actions, source.one_sided->name));
  collective::CompileOptions same = options;
  same.protocol = source.one_sided->protocol;
  return collective::compile(moves, same);
}

Result<collective::Protocol> find_protocol(std::string_view name) {
  using enum collective::Protocol;
  if (name.empty()) return simple;
  for (const collective::Protocol protocol : {simple, ll, ll128})
    if (lower(name) == lower(collective::name(protocol))) return protocol;
  return user_error(fmt::format("unknown protocol: {}", name), "Simple, LL or LL128");
}

Reply complain(const Error& error) {
  Reply reply;
  reply.exit_code = error.fault == Fault::world ? ExitCode::world_error : ExitCode::user_error;
  reply.complaint = language::complain(error, error.text != nullptr ? std::string_view(*error.text) : "");
  return reply;
}

Reply to_reply(const Result<std::string>& answer) {
  return answer.ok() ? Reply{ExitCode::ok, *answer, {}} : complain(answer.error());
}

}  // namespace weft::session
