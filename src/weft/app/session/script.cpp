// RUN: executes a file's statements in its place.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "weft/app/session/state.h"
#include "weft/base/file.h"
#include "weft/language/bind.h"
#include "weft/language/complaint.h"

namespace weft::session {
namespace {

constexpr std::int64_t kMostScript = std::int64_t{64} << 20;
constexpr std::size_t kMostNestedScripts = 32;

// Adds the file's name to the error, and the script's text if the error has no text yet.
Error in_script(Error error, std::string_view file, const language::ParsedText& source, Span statement) {
  if (error.text == nullptr) {
    error.text = source.text;
    if (!error.span.known()) error.span = statement;
    error.message = fmt::format("in {}: {}", file, error.message);
    return error;
  }
  const auto [line, column] = language::position(*source.text, statement.offset);
  error.message = fmt::format("in {}, line {}: {}", file, line, error.message);
  return error;
}

// A canonical path, equal for all paths to the same file.
std::string identity(const std::string& file) {
  std::error_code failure;
  const std::filesystem::path real = std::filesystem::canonical(file, failure);
  return failure ? file : real.string();
}

Status run_all(Session::State& state, const Context& context, std::string_view file) {
  for (const language::syntax::Statement* statement : context.source->script.statements) {
    if (context.interrupted && context.interrupted()) return user_error("interrupted");
    auto answer = run_statement(state, context, *statement);
    if (context.on_statement_end) context.on_statement_end();
    if (!answer.ok()) return in_script(std::move(answer).error(), file, *context.source, statement->span);
    context.tell(*statement, *answer);
  }
  return {};
}

}  // namespace

Answer run_script(Session::State& state, const Context& context, const language::syntax::RunFile& run) {
  const std::string file(run.file.text);
  const auto placed = [&](Error error) {
    error.span = run.file.span;
    if (error.hint.empty()) error.hint = "RUN names a file, relative to the current directory";
    return error;
  };
  auto text = read_file(file, kMostScript);
  if (!text.ok()) return placed(std::move(text).error());
  std::string real = identity(file);
  if (std::ranges::find(state.scripts, real) != state.scripts.end())
    return user_error(fmt::format("{} runs itself", file),
                      "a script cannot run itself, directly or through another script", run.file.span);
  if (state.scripts.size() == kMostNestedScripts)
    return user_error(fmt::format("scripts are nested more than {} deep: {}", kMostNestedScripts, file),
                      "run some of them one after the other", run.file.span);
  auto parsed = language::parse_and_keep(*text);
  if (!parsed.ok()) {
    Error error = std::move(parsed).error();
    error.message = fmt::format("in {}: {}", file, error.message);
    error.text = std::make_shared<const std::string>(std::move(*text));
    return error;
  }
  Context inside = context;
  inside.source = *parsed;
  state.scripts.push_back(std::move(real));
  const Status done = run_all(state, inside, file);
  state.scripts.pop_back();
  if (!done.ok()) return done.error();
  return std::string();
}

}  // namespace weft::session
