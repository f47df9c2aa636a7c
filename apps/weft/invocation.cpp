#include "invocation.h"

#include <algorithm>
#include <optional>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "script.h"
#include "weft/app/session/command_catalog.h"

namespace weft {
namespace {

// The last one, bench-rank, is internal: bench starts it.
constexpr std::string_view kCommands[] = {"bench",  "collective", "doctor",    "import",   "improve",
                                          "launch", "memory",     "partition", "plan",     "profile",
                                          "rules",  "schedule",   "simulate",  "tokenize", "top",
                                          "tune",   "validate",   "bench-rank"};
// Commands whose arguments name clusters, devices or models.
constexpr std::string_view kScriptCommands[] = {"collective", "improve", "plan", "rules", "validate"};

bool is_one_of(std::string_view word, std::span<const std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

}  // namespace

std::vector<std::string_view> command_names() { return {std::begin(kCommands), std::end(kCommands) - 1}; }

Invocation read_invocation(int argc, char** argv) {
  Invocation given;
  std::vector<char*> kept;  // to append after the command's name
  int at = 1;
  const auto value_of = [&](std::string_view option,
                            std::string_view argument) -> std::optional<std::string> {
    if (argument == option) return at < argc ? std::optional<std::string>(argv[at++]) : std::nullopt;
    argument.remove_prefix(option.size());
    return std::string(argument.starts_with('=') ? argument.substr(1) : argument);
  };
  while (at < argc && argv[at][0] == '-' && argv[at][1] != '\0') {
    const std::string_view argument = argv[at++];
    if (argument.starts_with("-i")) {
      const auto script = value_of("-i", argument);
      if (!script) return {};
      given.scripts.push_back(*script);
    } else if (argument.starts_with("-c")) {
      if (!value_of("-c", argument)) return {};
      given.statements = true;
    } else if (argument == "--format") {
      kept.push_back(argv[at - 1]);
      if (at < argc) kept.push_back(argv[at++]);
    } else if (argument.starts_with("--format=") || argument == "-h" || argument == "--help") {
      kept.push_back(argv[at - 1]);
    } else {
      return {};  // --version, or an unknown option
    }
  }
  if (at == argc || !is_one_of(argv[at], kCommands)) return {};
  given.command = argv[at];
  // All later arguments belong to launch or to the program that it starts.
  const bool launches = given.command == "launch";
  given.arguments.push_back(argv[at++]);
  if (launches) given.arguments.insert(given.arguments.end(), kept.begin(), kept.end());
  for (; at < argc; ++at) {
    if (!launches && std::string_view(argv[at]) == "-i" && at + 1 < argc)
      given.scripts.emplace_back(argv[++at]);
    else if (!launches && std::string_view(argv[at]) == "-c" && at + 1 < argc)
      given.statements = true, ++at;
    else
      given.arguments.push_back(argv[at]);
  }
  if (!launches) given.arguments.insert(given.arguments.end(), kept.begin(), kept.end());
  return given;
}

// Scripts create clusters and models for the commands that take their names. No command takes -c.
Status read_scripts(const Invocation& given) {
  if (given.command.empty()) return {};
  if (given.statements)
    return user_error(fmt::format("-c cannot be combined with {}", given.command),
                      "weft -c 'STATEMENT' runs one statement");
  if (given.scripts.empty()) return {};
  if (!is_one_of(given.command, kScriptCommands))
    return user_error(
        fmt::format("-i cannot be combined with {}", given.command),
        fmt::format("it has no cluster or model; -i works with {}", fmt::join(kScriptCommands, ", ")));
  for (const std::string& file : given.scripts) {
    WEFT_TRY(text, read_script(file));
    if (Status read = session::read_before_command(text); !read.ok()) {
      Error error = std::move(read).error();
      error.message = fmt::format("{}: {}", file, error.message);
      return error;
    }
  }
  return {};
}

}  // namespace weft
