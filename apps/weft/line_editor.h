// line_editor.h -- reads one line from a terminal.
//
//   LineEditor editor(history_file, complete);
//   Line line = editor.read("weft> ");
//   editor.remember("SHOW MODELS;");      // adds it to the history, which the file keeps
//
// With libedit: line editing, history and Tab completion. Without it: a plain line.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "completion.h"

namespace weft {

struct Line {
  enum class Kind { text, abandoned, end };  // Enter, Ctrl-C, Ctrl-D
  Kind kind = Kind::text;
  std::string text;  // without the newline
};

class LineEditor {
 public:
  // Returns the completions of the line up to the cursor.
  using Complete = std::function<Completion(std::string_view before)>;

  // With an empty `history_file` the history is not saved.
  LineEditor(std::string history_file, Complete complete);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  Line read(const char* prompt);
  void remember(const std::string& entry);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft
