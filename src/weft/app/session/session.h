// weft/app/session/session.h -- the main interface: executes statements and returns replies.
//
//   Session session;
//   Reply reply = session.execute("DESCRIBE gpt2;");
//   // reply.output is what to print, reply.complaint what to print on stderr, reply.exit_code 0..4
//
// A session holds a catalog that starts with the shipped devices, clusters, layers and models, and
// the settings and hints given so far. Statements run in order; the first error stops the text. A
// statement that fails leaves catalog and settings unchanged. Never prints, never throws.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/app/explain/lines.h"
#include "weft/app/explain/progress.h"
#include "weft/base/result.h"

namespace weft::run {
struct Weights;
}  // namespace weft::run

namespace weft::session {

enum class Format { text, json };

// stopped: a TRAIN was terminated before its last step, and saved its checkpoint if one is set.
enum class ExitCode { ok = 0, user_error = 1, environment_error = 2, internal_error = 3, stopped = 4 };

struct Reply {
  ExitCode exit_code = ExitCode::ok;
  std::string output;  // of all statements that ran; each ends in a newline
  // What to print on stderr, ending in a newline: warnings (warnings.h), then the error with its
  // location and hint. Empty on success.
  std::string complaint;
  // The error of Session::execute in structured form. Its span refers to error->text, or if that is
  // null, to the executed text.
  std::optional<Error> error = std::nullopt;
};

struct Completions {
  std::vector<std::string> words;
  std::size_t replaced = 0;      // length of the unfinished word in bytes
  std::string_view after = " ";  // what to append to a word that is not a folder
};

class Session {
 public:
  Session();
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  Format format = Format::text;
  bool with_report = false;  // with Format::json, documents of EXPLAIN include the printed report
  std::size_t width = explain::kUsualWidth;  // of the terminal, for tables and long lines

  // Whether more texts may follow. If so, weights are kept after an interrupted training.
  bool goes_on = true;

  // Called with each statement's output as soon as it is ready; if empty, the reply collects the
  // output.
  std::function<void(std::string_view)> on_output;
  // Called with text that only confirms a statement ("created model m", "cluster = pod"). If empty,
  // that text is output. This way `weft -i setup.weft -c 'EXPLAIN (FORMAT plan) ..' > p.plan`
  // writes only the plan.
  std::function<void(std::string_view)> on_note;
  // Polled between statements and periodically during long ones. True stops the session cleanly
  // with "interrupted" (a user error). A plan search ends with the best plan found so far: EXPLAIN
  // shows that.
  std::function<bool()> interrupted;

  // Polled before each training step. True saves the checkpoint and ends the session
  // (ExitCode::stopped).
  std::function<bool()> terminated;
  // Called with true before the first step of a TRAIN and with false after the last. If the process
  // exits in between, progress since the last checkpoint is lost.
  std::function<void(bool)> on_training;
  // Called with warnings during a TRAIN; if empty, the reply contains them.
  std::function<void(std::string_view)> on_warning;

  // Called with the progress of a TRAIN or a search, at most ten times per second; may be empty.
  std::function<void(const explain::Progress&)> on_progress;
  // Called after a statement, before its output or error is reported.
  std::function<void()> on_statement_end;

  Reply execute(std::string_view text);

  // The weights of a model that was trained or loaded; valid until the next statement.
  Result<const run::Weights*> weights(std::string_view model) const;

  // Completions for `before`, the statement typed so far up to the cursor, whose last word is
  // unfinished. Offers keywords, then matching names from the catalog, settings and their values,
  // and files.
  Completions complete(std::string_view before) const;

  // False if `text` is an unfinished statement; the REPL then reads another line.
  static bool is_complete(std::string_view text);

  struct State;  // see session/state.h

 private:
  std::unique_ptr<State> state_;
};

// Topics of `weft help`, and the text of one. For an unknown topic the closest one is suggested.
std::vector<std::string_view> help_topics();
Reply help(std::string_view topic, std::size_t width = explain::kUsualWidth);

}  // namespace weft::session
