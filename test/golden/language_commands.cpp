// Commands whose input is WeftQL.

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "weft/app/session/session.h"
#include "weft/language/complaint.h"
#include "weft/language/parser.h"
#include "weft/language/print.h"
#include "weft/plan/graph/hash.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"

namespace weft::golden {
namespace {

std::string reply_text(const session::Reply& reply) {
  std::string text = reply.output + reply.complaint;
  if (reply.exit_code != session::ExitCode::ok)
    text += fmt::format("exit {}\n", static_cast<int>(reply.exit_code));
  return text;
}

// Runs the script, then EXPLAINs the model. Returns the script's reply if the script fails.
session::Reply explain_model(std::string_view script, std::string_view model, std::string_view mode,
                             std::string_view options = "FORMAT plan") {
  session::Session session;
  session::Reply created = session.execute(script);
  if (created.exit_code != session::ExitCode::ok) return created;
  return session.execute(
      fmt::format("EXPLAIN ({}) {} {};", options, mode == "train" ? "TRAIN" : "INFER", model));
}

// The last model that a script creates.
std::string last_model(std::string_view script) {
  const auto parsed = language::parse(script);
  std::string name;
  if (!parsed.ok()) return name;
  for (const language::syntax::Statement* statement : parsed->statements) {
    if (statement->kind != language::syntax::StatementKind::create_model) continue;
    name = statement->as<language::syntax::CreateModel>().name.text;
  }
  return name;
}

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(at), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// The script of a case. With the flag `expand`, {300*(} stands for 300 times ( and \x00 for that
// byte: such input would be unreadable in a file, or would make the file binary.
std::string script_of(const Case& test) {
  if (!test.flags.contains("expand")) return test.input;
  std::string text;
  std::string_view rest = test.input;
  while (!rest.empty()) {
    unsigned number = 0;
    if (rest.starts_with("\\x") && rest.size() >= 4 &&
        std::from_chars(rest.data() + 2, rest.data() + 4, number, 16).ec == std::errc()) {
      text += static_cast<char>(number);
      rest.remove_prefix(4);
      continue;
    }
    const std::size_t star = rest.find('*'), close = rest.find('}');
    if (rest.front() == '{' && star < close && close != rest.npos &&
        std::from_chars(rest.data() + 1, rest.data() + star, number).ptr == rest.data() + star) {
      for (unsigned i = 0; i < number; ++i) text += rest.substr(star + 1, close - star - 1);
      rest.remove_prefix(close + 1);
      continue;
    }
    text += rest.front();
    rest.remove_prefix(1);
  }
  return text;
}

// only=a,b: keeps the fields a and b of each line that is a JSON object.
std::string keep_fields(std::string_view lines, std::string_view only) {
  std::string text;
  for (const std::string& line : split(lines, '\n')) {
    const auto whole = nlohmann::ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!whole.is_object()) {
      text += line + '\n';
      continue;
    }
    nlohmann::ordered_json kept = nlohmann::ordered_json::object();
    for (const std::string& field : split(only, ','))
      if (whole.contains(field)) kept[field] = whole[field];
    text += kept.dump() + '\n';
  }
  return text;
}

std::vector<std::string> split_at_equals(std::string_view text) {
  std::vector<std::string> parts(1);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    if (line == "==\n")
      parts.emplace_back();
    else
      parts.back() += line;
    text.remove_prefix(end);
  }
  return parts;
}

}  // namespace

std::string parse_command(const Case& test) {
  const std::string text = script_of(test);
  const auto script = language::parse(text);
  return script.ok() ? language::print(*script) : language::complain(script.error(), text);
}

std::string session_command(const Case& test) {
  session::Session session;
  if (test.flag("format") == "json") session.format = session::Format::json;
  const std::string only = test.flag("only");
  std::string text;
  for (const std::string& script : split_at_equals(script_of(test))) {
    session::Reply reply = session.execute(script);
    if (!only.empty()) reply.output = keep_fields(reply.output, only);
    text += reply_text(reply);
  }
  return text;
}

std::string bind_command(const Case& test) {
  return reply_text(
      explain_model(test.input, test.flag("model", last_model(test.input)), test.flag("mode", "infer")));
}

std::string explain_command(const Case& test) {
  return reply_text(explain_model(test.input, test.flag("model", last_model(test.input)),
                                  test.flag("mode", "infer"), "OPERATORS"));
}

std::string same_plan_command(const Case& test) {
  std::set<Digest> plans;
  for (const std::string& part : split_at_equals(test.input)) {
    std::string text = part;
    if (!part.starts_with("plan ")) {
      const session::Reply reply =
          explain_model(part, test.flag("model", last_model(part)), test.flag("mode", "infer"));
      if (reply.exit_code != session::ExitCode::ok) return reply_text(reply);
      text = reply.output;
    }
    const auto graph = plan::read(text, ops::all());
    if (!graph.ok()) return language::complain(graph.error(), text);
    plans.insert(plan::structural_hash(*graph));
  }
  return plans.size() == 1 ? "one plan" : fmt::format("{} plans", plans.size());
}

}  // namespace weft::golden
