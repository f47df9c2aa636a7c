// weft/app/session/state.h -- what a session remembers, and one function a kind of statement.
//
// Included by app/session and app/command only. A statement's function returns what to print, in the
// session's format, or an error; a function that fails has changed nothing.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "weft/app/session/session.h"
#include "weft/app/session/settings.h"
#include "weft/app/session/warnings.h"
#include "weft/base/hash.h"
#include "weft/base/result.h"
#include "weft/language/catalog.h"
#include "weft/language/shipped.h"
#include "weft/planner/search/distribution/known_plans.h"
#include "weft/rules/rule/rule.h"
#include "weft/runtime/run/weights.h"

namespace weft::session {

// A HINT that the planner keeps to.
struct KeptHint {
  language::syntax::HintKind kind;
  std::string subject, tensor, axis;  // as syntax::HintItem; tensor may be empty
  std::string text;                   // "SLICE b OF x ACROSS node"
};

struct Session::State {
  language::Catalog catalog;
  Settings settings;
  std::vector<KeptHint> hints;
  std::map<std::string, run::Weights> weights;  // what each model has learned
  std::set<std::string> loaded;  // models whose weights a file gave, and no TRAIN changed since
  // Plans for clusters that were searched for already; searching changes nothing else.
  std::shared_ptr<search::KnownPlans> known_plans = std::make_shared<search::KnownPlans>();
  // Rules that were proven, by their text, as they may fire: nothing where they may not.
  mutable std::map<std::string, std::optional<rule::Rule>> proven_rules;
  // What was said of plans that were proven, so that the same plan is not proven again (prove_plan.h).
  mutable std::map<Digest, std::string> proven;
  mutable Warnings warnings;
  std::vector<std::string> scripts;  // that RUN is running, the outermost first
  mutable bool stopped = false;      // the error that ends the text is that it was told to
};

// What a statement may read besides the session's state.
struct Context {
  Format format;
  std::size_t width;
  std::shared_ptr<const language::ParsedText> source;
  std::function<bool()> interrupted;
  std::function<void(const explain::Progress&)> on_progress;
  std::function<void()> on_statement_end;
  // Takes the answer of a statement that another one runs; what RUN says comes as it goes.
  std::function<void(const language::syntax::Statement&, const std::string&)> tell;
  std::function<bool()> terminated;
  std::function<void(bool)> on_training;
  std::function<void(std::string_view)> on_warning;
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
// What a file holds for a model, as the model's text has it.
Result<run::Weights> read_weights_file(const Session::State& state, const Context& context,
                                       const language::syntax::Name& model, const std::string& path);
// The statements of a file, as if they stood in its place.
Answer run_script(Session::State& state, const Context& context, const language::syntax::RunFile& run);
Answer run_explain(const Session::State& state, const Context& context,
                   const language::syntax::Explain& explain);

Answer run_synthesize(const Session::State& state, const language::syntax::Synthesize& synthesize);

// The sizes a model declares; fails when there is no such model.
Result<std::vector<std::string_view>> sizes_of(const language::Catalog& catalog,
                                               const language::syntax::Name& model);

// One statement of any kind.
Answer run_statement(Session::State& state, const Context& context,
                     const language::syntax::Statement& statement);

// The cluster or device a statement is ON; LOCAL 1 without ON.
Result<cluster::Cluster> target_of(const language::Catalog& catalog,
                                   const std::optional<language::syntax::Target>& target);

// As ON names it.
language::syntax::Target named_target(std::string_view name, Span span);

// One of these devices by itself, which is not this machine.
cluster::Cluster one_of(const cluster::Device& device);

}  // namespace weft::session
