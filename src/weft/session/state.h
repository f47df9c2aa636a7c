// weft/session/state.h -- what a session remembers, and one function a kind of statement.
//
// Included by the files of session/ only. A statement's function returns what to print, in the
// session's format, or an error; a function that fails has changed nothing.
#pragma once
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/language/catalog.h"
#include "weft/session/session.h"
#include "weft/session/settings.h"

namespace weft::session {

struct Session::State {
  language::Catalog catalog;
  Settings settings;
  std::vector<std::string> hints;
};

// What a statement may read besides the session's state.
struct Context {
  Format format;
  std::shared_ptr<const language::ParsedText> source;
  std::function<bool()> interrupted;
};

using Answer = Result<std::string>;

// Fills a catalog with the shipped devices, clusters, layers and models.
void load_shipped(language::Catalog& catalog);

Answer run_create(Session::State& state, const Context& context,
                  const language::syntax::Statement& statement);
Answer run_set(Session::State& state, const Context& context, const language::syntax::Set& set);
Answer run_hint(Session::State& state, const Context& context, const language::syntax::Hint& hint);
Answer run_show(const Session::State& state, const Context& context, const language::syntax::Show& show);
Answer run_describe(const Session::State& state, const Context& context,
                    const language::syntax::Describe& describe);
Answer run_explain(const Session::State& state, const Context& context,
                   const language::syntax::Explain& explain);

// Statements whose names are checked but whose work is not built yet.
Answer run_unbuilt(const Session::State& state, const language::syntax::Statement& statement);

// The sizes a model declares; fails when there is no such model.
Result<std::vector<std::string_view>> sizes_of(const language::Catalog& catalog,
                                               const language::syntax::Name& model);

// The cluster a statement is ON; LOCAL 1 without ON.
Result<cluster::Cluster> target_of(const language::Catalog& catalog,
                                   const std::optional<language::syntax::Target>& target);

}  // namespace weft::session
