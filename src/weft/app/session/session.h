// weft/app/session/session.h -- the front door: statements in, answers out.
//
//   Session session;
//   Reply reply = session.execute("DESCRIBE gpt2;");
//   // reply.output is what to print, reply.complaint what to print on stderr, reply.exit_code 0..3
//
// A session owns a catalog that starts with the shipped devices, clusters, layers and models,
// and the settings and hints given so far. Statements run in order and the first error stops the
// text; a statement that fails leaves catalog and settings as they were. Never prints, never throws.
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

namespace weft::session {

enum class Format { text, json };

// stopped: a TRAIN ended before its last step because it was told to, and saved its checkpoint where it has one.
enum class ExitCode { ok = 0, user_error = 1, world_error = 2, internal_error = 3, stopped = 4 };

struct Reply {
  ExitCode exit_code = ExitCode::ok;
  std::string output;  // of the statements that ran, each ending in a newline
  // What to print on stderr, ending in a newline: warnings (warnings.h), then the error with its place and
  // hint. Empty when all is well.
  std::string complaint;
  // The same for programs, of Session::execute: its span lies in error->text, or else in the text that was
  // run.
  std::optional<Error> error = std::nullopt;
};

struct Completions {
  std::vector<std::string> words;
  std::size_t replaced = 0;      // bytes of the unfinished word
  std::string_view after = " ";  // what ends a word that is not a folder
};

class Session {
 public:
  Session();
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  Format format = Format::text;
  std::size_t width = explain::kUsualWidth;  // of the reader's screen: what tables and long lines keep to

  // Whether more texts may follow, so that what models learned until an interruption is still of use.
  bool goes_on = true;

  // Called with each statement's output as soon as it has it, instead of collecting it in the reply.
  std::function<void(std::string_view)> on_output;
  // The same of what only confirms a statement ("created model m", "cluster = pod") in text; empty: it is output. So
  // that `weft -i setup.weft -c 'EXPLAIN (FORMAT plan) ..' > p.plan` writes a plan and nothing else.
  std::function<void(std::string_view)> on_note;
  // Asked between statements and now and then inside long ones; true stops the session cleanly
  // with "interrupted" (a user error). A search for a plan ends with the best it has found: EXPLAIN shows that.
  std::function<bool()> interrupted;

  // Asked before each step of a TRAIN: true saves its checkpoint and ends the session (ExitCode::stopped).
  std::function<bool()> terminated;
  // Called with true before the first step of a TRAIN, and with false when it is over: what it has learned since
  // its last checkpoint is lost if the process ends in between.
  std::function<void(bool)> on_training;
  // Told of what goes wrong while a TRAIN goes on; by default the reply tells it.
  std::function<void(std::string_view)> on_warning;

  // Told how far a TRAIN or a search is, ten times a second at most; nobody is by default.
  std::function<void(const explain::Progress&)> on_progress;
  // Called when a statement is over, before its output or complaint comes.
  std::function<void()> on_statement_end;

  Reply execute(std::string_view text);

  // Words that may follow `before` (the statement typed so far up to the cursor) and begin with
  // its last, unfinished word: keywords, then names from the catalog that fit there, settings and what they
  // may be, files.
  Completions complete(std::string_view before) const;

  // False while `text` is an unfinished statement: the REPL then asks for another line.
  static bool is_complete(std::string_view text);

  struct State;  // session/state.h

 private:
  std::unique_ptr<State> state_;
};

// Topics of `weft help`, and the text of one; an unknown topic is answered with the nearest one.
std::vector<std::string_view> help_topics();
Reply help(std::string_view topic, std::size_t width = explain::kUsualWidth);

}  // namespace weft::session
