// weft/app/session/state.h -- the state of a session, and one function per kind of statement.
//
// Included by app/session and app/command only. A statement's function returns the text to print,
// in the session's format, or an error. A function that fails has changed nothing.
#pragma once
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "weft/app/session/session.h"
#include "weft/base/result.h"
#include "weft/language/shipped.h"
#include "weft/planner/statement/knowledge.h"
#include "weft/planner/statement/observer.h"
#include "weft/planner/target/find_target.h"
#include "weft/runtime/run/weights.h"

namespace weft::session {

using namespace planner;  // most statements use the planner

struct Session::State : Knowledge {
  std::set<std::string> loaded;      // models with weights from a file and no TRAIN since
  std::vector<std::string> scripts;  // active RUN scripts, outermost first
  mutable bool stopped = false;      // the error is a requested stop: see ExitCode::stopped
};

// What a statement can read besides the session's state.
struct Context : Observer {
  Format format = Format::text;
  bool with_report = false;  // see Session
  std::size_t width = explain::kUsualWidth;
  std::shared_ptr<const language::ParsedText> source;
  std::function<void(const explain::Progress&)> on_progress;
  std::function<void()> on_statement_end;
  // Receives the answers of statements inside a RUN script as they complete.
  std::function<void(const language::syntax::Statement&, const std::string&)> tell;
  // Receives the beginning of an answer before the statement is done; may be empty. run_statement()
  // returns the rest.
  std::function<void(std::string_view)> on_text;
  std::function<bool()> terminated;
  std::function<void(bool)> on_training;
  bool goes_on = true;
};

using Answer = Result<std::string>;

Answer run_create(Session::State& state, const Context& context,
                  const language::syntax::Statement& statement);
Answer run_set(Session::State& state, const Context& context, const language::syntax::Set& set);
Answer run_hint(Session::State& state, const Context& context, const language::syntax::Hint& hint);
Answer run_show(const Session::State& state, const Context& context, const language::syntax::Show& show);
Answer run_clear(const Session::State& state, const Context& context, const language::syntax::Clear& clear);
Answer run_describe(const Session::State& state, const Context& context,
                    const language::syntax::Describe& describe);
Answer run_train(Session::State& state, const Context& context, const language::syntax::Run& run);
Answer run_infer(Session::State& state, const Context& context, const language::syntax::Run& run);
Answer run_generate(Session::State& state, const Context& context, const language::syntax::Run& run);
Answer run_save(const Session::State& state, const Context& context, const language::syntax::Save& save);
Answer run_load(Session::State& state, const Context& context, const language::syntax::Load& load);
// Reads a model's weights from a file and checks them against the model's declaration.
Result<run::Weights> read_weights_file(const Session::State& state, const Context& context,
                                       const language::syntax::Name& model, const std::string& path);
// Executes the statements of a file in place of the RUN.
Answer run_script(Session::State& state, const Context& context, const language::syntax::RunFile& run);
Answer run_explain(const Session::State& state, const Context& context,
                   const language::syntax::Explain& explain);

Answer run_synthesize(const Session::State& state, const language::syntax::Synthesize& synthesize);

// Executes a statement of any kind.
Answer run_statement(Session::State& state, const Context& context,
                     const language::syntax::Statement& statement);

}  // namespace weft::session
