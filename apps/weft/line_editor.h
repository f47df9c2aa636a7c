// line_editor.h -- reads one line from a terminal.
//
//   LineEditor editor(history_file, complete);
//   Line line = editor.read("weft> ");
//   editor.remember("SHOW MODELS;");      // into the history, kept in its file
//
// With libedit: editing, history, completion on Tab. Built without it: a plain line.
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
  // Given the line up to the cursor, what may end it.
  using Complete = std::function<Completion(std::string_view before)>;

  // An empty `history_file` keeps no history beyond this run.
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
