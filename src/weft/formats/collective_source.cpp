#include "weft/formats/collective_source.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "weft/base/file.h"
#include "weft/base/letters.h"
#include "weft/collectives/algorithm/claims.h"
#include "weft/collectives/algorithm/library.h"
#include "weft/collectives/check/recover_moves.h"
#include "weft/collectives/chunks/program_text.h"
#include "weft/collectives/chunks/restate.h"
#include "weft/collectives/one_sided/check_work.h"
#include "weft/collectives/synthesis/named_trees.h"
#include "weft/formats/mscclpp_json.h"

namespace weft::formats {
namespace {

constexpr std::int64_t kMostSourceBytes = std::int64_t{256} << 20;  // per file

bool is_file(const std::string& path) {
  std::error_code unused;
  return std::filesystem::is_regular_file(path, unused);
}

// "ring.algorithm(ranks=8)" -> ring.algorithm and (ranks=8), unless the whole is a file.
std::pair<std::string, std::string> split_parameters(std::string_view reference) {
  std::string path(reference);
  if (is_file(path) || path.empty() || path.back() != ')') return {path, ""};
  const std::size_t paren = path.find('(');
  if (paren == std::string::npos) return {path, ""};
  return {path.substr(0, paren), path.substr(paren)};
}

// The first word of a text after whitespace and comments, or the first character if it is not a
// letter.
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
  if (at == text.size()) return "\n";  // only whitespace
  return lower(text.substr(at, std::max<std::size_t>(end - at, 1)));
}

Error with_text(Error error, const std::string& text) {
  if (error.span.known() && error.text == nullptr) error.text = std::make_shared<const std::string>(text);
  return error;
}

Result<CollectiveSource> traced(const collective::Algorithm& algorithm, collective::Arguments arguments,
                                const CollectiveReading& reading) {
  if (reading.complete) reading.complete(algorithm, arguments);
  CollectiveSource source;
  const collective::TraceLimits limits =
      reading.effort > 0 ? collective::trace_limits(reading.effort) : collective::TraceLimits{};
  WEFT_TRY(moves, collective::trace(algorithm, arguments, collective::shipped_algorithms(), limits));
  WEFT_TRY_STATUS(collective::check_claims(algorithm, arguments, moves));
  source.moves = std::move(moves);
  return source;
}

Result<CollectiveSource> source_from_text(const std::string& text, const std::string& path,
                                          const std::string& parameters, const CollectiveReading& reading) {
  CollectiveSource source;
  const std::string word = first_word(text);
  if (word == "algorithm") {
    auto algorithm = collective::parse_algorithm(text);
    if (!algorithm.ok()) return with_text(algorithm.error(), text);
    WEFT_TRY(reference, collective::parse_reference(algorithm->name() + parameters));
    return traced(*algorithm, std::move(reference.arguments), reading);
  }
  if (!parameters.empty())
    return user_error(fmt::format("{} takes no parameters: {}", path, parameters),
                      "only an algorithm has parameters");
  if (word == "<") {
    WEFT_TRY(program, formats::read_msccl_xml(text, {.operands = reading.operands}));
    if (reading.effort > 0) WEFT_TRY_STATUS(collective::check_work(program.program, reading.effort));
    source.program = std::move(program);
    source.is_xml = true;
  } else if (word == "{") {
    WEFT_TRY(plan, formats::read_mscclpp_json(text));
    if (reading.effort > 0) WEFT_TRY_STATUS(collective::check_work(plan, reading.effort));
    source.one_sided = std::move(plan);
  } else if (word == "program") {
    auto program = collective::parse_program(text);
    if (!program.ok()) return with_text(program.error(), text);
    if (reading.effort > 0) WEFT_TRY_STATUS(collective::check_work(*program, reading.effort));
    source.program.emplace().program = std::move(*program);
  } else if (word == "moves") {
    auto moves = collective::parse_moves(text);
    if (!moves.ok()) return with_text(moves.error(), text);
    source.moves = std::move(*moves);
  } else {
    const bool readable = std::isprint(static_cast<unsigned char>(word.front())) != 0;
    return user_error(
        fmt::format("{} is not a collective program{}", path,
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

Result<CollectiveSource> read_collective(std::string_view reference, const CollectiveReading& reading) {
  const auto [path, parameters] = split_parameters(reference);
  // A reference with a slash or dot before any parenthesis is meant to be a file.
  const bool meant = path.substr(0, path.find('(')).find_first_of("/.") != std::string::npos;
  if (meant || is_file(path)) {
    WEFT_TRY(text, read_file(path, kMostSourceBytes));
    return source_from_text(text, path, parameters, reading);
  }
  auto named = collective::parse_reference(reference);
  if (!named.ok()) return with_text(named.error(), std::string(reference));
  if (synthesis::kind_of_trees(named->name)) {
    if (reading.ranks > 0) named->arguments.try_emplace("ranks", std::int64_t{reading.ranks});
    CollectiveSource source;
    WEFT_TRY(moves, synthesis::named_trees(*named));
    source.moves = std::move(moves);
    return source;
  }
  WEFT_TRY(algorithm, collective::find_algorithm(collective::shipped_algorithms(), named->name));
  return traced(algorithm, std::move(named->arguments), reading);
}

Status check_as(CollectiveSource& source, std::string_view as) {
  if (as.empty()) return {};
  if (source.moves)
    return user_error("an algorithm defines what it computes", "--as is for programs read from files");
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
  WEFT_TRY_STATUS(expect_correct(collective::check(*source.one_sided), "the plan is"));
  const collective::Actions actions = collective::to_actions(*source.one_sided, collective::Grain::chunk);
  WEFT_TRY(moves, collective::recover_moves(actions, source.one_sided->name));
  collective::CompileOptions same = options;
  same.protocol = source.one_sided->protocol;
  return collective::compile(moves, same);
}

Status expect_correct(const collective::Report& report, std::string_view what) {
  if (!report.finding) return {};
  return user_error(
      fmt::format("{} incorrect ({}): {}", what, name(report.verdict()), print(*report.finding)),
      "weft collective check checks programs without running them");
}

Result<collective::Protocol> find_protocol(std::string_view name) {
  using enum collective::Protocol;
  if (name.empty()) return simple;
  for (const collective::Protocol protocol : {simple, ll, ll128})
    if (lower(name) == lower(collective::name(protocol))) return protocol;
  return user_error(fmt::format("unknown protocol: {}", name), "Simple, LL or LL128");
}

}  // namespace weft::formats
