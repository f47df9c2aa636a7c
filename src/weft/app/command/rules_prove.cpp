// weft rules prove: a verdict for every rule in a file.
#include <chrono>

#include <fmt/format.h>

#include "weft/app/command/rules.h"
#include "weft/app/explain/lines.h"
#include "weft/app/session/reply.h"
#include "weft/base/file.h"
#include "weft/formats/rules_jsonl.h"
#include "weft/planner/statement/rule_source.h"
#include "weft/rules/equation/prove_equation.h"

namespace weft::command {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Judging {
 public:
  explicit Judging(const RulesProve& request) : request_(request) {
    if (request.shapes > 0) options_.shapes = request.shapes;
  }

  // Prints one line per rule as it is judged. An invalid line is reported and skipped.
  Status json_lines(const std::string& path) {
    WEFT_TRY(text, read_file(path, planner::kLargestRuleFile));
    formats::RuleLines lines(text);
    while (const auto line = lines.next()) {
      if (interrupted()) return user_error("interrupted");
      if (!line->equation.ok()) {
        ++bad_lines_;
        say(formats::write_bad_line(*line));
        continue;
      }
      const double begin = seconds_now();
      const rule::Verdict verdict = equation::prove(*line->equation, options_);
      say(formats::write_verdict(line->equation->id, verdict, seconds_now() - begin));
    }
    return {};
  }

  Status rule_text(const std::string& path) {
    WEFT_TRY(rules, planner::read_rules({path}));
    const std::optional<rule::ProofStore> store = planner::proof_store(request_.store, warnings_);
    for (const rule::Rule& rule : rules) {
      if (interrupted()) return user_error("interrupted");
      const double begin = seconds_now();
      const rule::RuleProof proof =
          request_.again ? rule::prove(rule, options_) : planner::proof_of(rule, store, options_);
      const double seconds = seconds_now() - begin;
      if (request_.format == session::Format::json)
        say(formats::write_verdict(rule.name, proof.verdict, seconds));
      else
        say_wrapped(planner::describe(rule, proof.verdict));
      if (!holds(proof.verdict)) failed_.push_back(rule.name);
    }
    return {};
  }

  planner::Warnings& warnings() { return warnings_; }

  session::Reply reply() && {
    session::Reply reply{session::ExitCode::ok, std::move(output_), {}};
    if (bad_lines_ > 0)
      reply = {session::ExitCode::user_error, std::move(reply.output),
               fmt::format("error: {} {} no rule\n", bad_lines_, bad_lines_ == 1 ? "line is" : "lines are")};
    else if (!failed_.empty())
      reply = {session::ExitCode::user_error, std::move(reply.output),
               fmt::format("error: not proven: {}\n", fmt::join(failed_, ", "))};
    return session::with_warnings(std::move(reply), warnings_);
  }

 private:
  bool interrupted() const { return request_.interrupted && request_.interrupted(); }

  void say_wrapped(std::string_view text) {
    std::string lines = explain::wrap(text, request_.width, 4);
    lines.pop_back();
    say(std::move(lines));
  }
  void say(std::string line) {
    line += '\n';
    if (request_.on_line)
      request_.on_line(line);
    else
      output_ += line;
  }

  const RulesProve& request_;
  rule::ProveOptions options_;
  planner::Warnings warnings_;
  std::string output_;
  std::size_t bad_lines_ = 0;
  std::vector<std::string> failed_;
};

}  // namespace

session::Reply run(const RulesProve& request) {
  Judging judging(request);
  for (const std::string& path : request.files) {
    const Status judged = path.ends_with(".jsonl") ? judging.json_lines(path) : judging.rule_text(path);
    if (!judged.ok()) {
      session::Reply wrong = session::with_warnings(session::complain(judged.error()), judging.warnings());
      wrong.output = std::move(judging).reply().output;
      return wrong;
    }
  }
  return std::move(judging).reply();
}

}  // namespace weft::command
