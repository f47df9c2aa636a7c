#include "repl.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "completion.h"
#include "interrupt.h"
#include "line_editor.h"
#include "weft/app/session/reply.h"

namespace weft {
namespace {

constexpr const char* kPrompt = "weft> ";
constexpr const char* kMorePrompt = "   -> ";

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// The path of the history file, with its folder created; empty if that fails.
std::string history_file() {
  std::filesystem::path folder;
  // XDG requires relative paths to be ignored.
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && state[0] == '/') {
    folder = state;
  } else if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/') {
    folder = std::filesystem::path(home) / ".local" / "state";
  } else {
    return {};
  }
  folder /= "weft";
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  return failure ? std::string() : (folder / "history").string();
}

// A line for the prompt itself, not for the session.
struct Command {
  enum class Kind { leave, help, unknown };
  Kind kind;
  std::string_view word, rest;
};

std::optional<Command> command_of(std::string_view line) {
  line = trim(line);
  const std::size_t end = std::min(line.find_first_of(" \t;"), line.size());
  std::string_view rest = trim(line.substr(end));
  while (rest.starts_with(';') || rest.ends_with(';')) {
    rest = trim(rest.starts_with(';') ? rest.substr(1) : rest.substr(0, rest.size() - 1));
  }
  const std::string_view word = line.substr(0, end);
  if (word == "\\q" || ((word == "quit" || word == "exit") && rest.empty())) {
    return Command{Command::Kind::leave, word, rest};
  }
  if (word == "\\h" || word == "\\?" || word == "help") return Command{Command::Kind::help, word, rest};
  if (word.starts_with('\\')) return Command{Command::Kind::unknown, word, rest};
  return std::nullopt;
}

// One history entry per statement, so that one key recalls it. Statements with comments are kept
// line by line: on a joined line, a comment would swallow what follows.
void remember(LineEditor& editor, std::string statement) {
  if (statement.find("--") == std::string::npos) {
    for (char& c : statement) {
      if (c == '\n') c = ' ';
    }
    editor.remember(statement);
    return;
  }
  for (std::size_t begin = 0; begin < statement.size();) {
    const std::size_t end = std::min(statement.find('\n', begin), statement.size());
    editor.remember(statement.substr(begin, end - begin));
    begin = end + 1;
  }
}

}  // namespace

int run_repl(session::Session& session, Output& output) {
  interrupt::stay();
  session.goes_on = true;
  std::string typed;  // lines of the statement so far
  LineEditor editor(history_file(), [&](std::string_view before) {
    return choose_completion(session.complete(fmt::format("{}{}", typed, before)));
  });
  const auto answer = [&](const session::Reply& reply) {
    output.write(reply.output);
    if (session.format == session::Format::json && reply.error)
      output.write(session::error_json(*reply.error, typed));
    else
      complain(reply.complaint);
  };

  output.write("Weft " WEFT_VERSION ". Statements end in ; -- \\h for help, \\q to quit.\n");
  while (!output.broken()) {
    interrupt::clear();
    const Line line = editor.read(typed.empty() ? kPrompt : kMorePrompt);
    interrupt::clear();  // an interrupt during editing must not stop the statement
    if (line.kind == Line::Kind::end) break;
    if (line.kind == Line::Kind::abandoned) {
      typed.clear();
      continue;
    }
    if (typed.empty()) {
      if (trim(line.text).empty()) continue;
      if (const auto command = command_of(line.text)) {
        editor.remember(line.text);
        if (command->kind == Command::Kind::leave) break;
        if (command->kind == Command::Kind::help) {
          answer(session::help(command->rest, output_width()));
        } else {
          complain(fmt::format("error: unknown command: {}\n  \\h for help, \\q to quit\n", command->word));
        }
        continue;
      }
    }
    typed += line.text;
    if (!session::Session::is_complete(typed)) {
      typed += '\n';
      continue;
    }
    remember(editor, typed);
    session.width = output_width();  // the window may have been resized
    answer(session.execute(typed));
    typed.clear();
  }
  return 0;
}

}  // namespace weft
