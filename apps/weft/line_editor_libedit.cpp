#include "line_editor.h"

#include <histedit.h>

#include <algorithm>
#include <clocale>
#include <cstdio>

#include <fmt/format.h>

#include "completion.h"
#include "interrupt.h"

namespace weft {

struct LineEditor::State {
  std::string history_file;
  Complete complete;
  const char* prompt = "";
  bool abandoned = false;
  History* history = nullptr;
  EditLine* editor = nullptr;
};

namespace {

constexpr int kHistoryEntries = 2000;

template <class State>
State& state_of(EditLine* editor) {
  void* data = nullptr;
  el_get(editor, EL_CLIENTDATA, &data);
  return *static_cast<State*>(data);
}

template <class State>
char* prompt(EditLine* editor) {
  return const_cast<char*>(state_of<State>(editor).prompt);
}

// Ctrl-C. Its signal is disabled while a line is edited, so it arrives as a key.
template <class State>
unsigned char abandon(EditLine* editor, int) {
  state_of<State>(editor).abandoned = true;
  std::fputs("^C\n", stdout);
  return CC_EOF;
}

// Ctrl-D exits on an empty line and deletes forward on any other.
unsigned char leave_or_delete(EditLine* editor, int) {
  const LineInfo* line = el_line(editor);
  if (line->buffer == line->lastchar) {
    std::fputs("\n", stdout);
    return CC_EOF;
  }
  if (line->cursor == line->lastchar) return CC_ERROR;
  el_cursor(editor, 1);
  el_deletestr(editor, 1);
  return CC_REFRESH;
}

template <class State>
unsigned char complete(EditLine* editor, int) {
  const LineInfo* line = el_line(editor);
  const std::string_view before(line->buffer, static_cast<std::size_t>(line->cursor - line->buffer));
  const Completion found = state_of<State>(editor).complete(before);
  if (!found.insert.empty()) {
    el_deletestr(editor, static_cast<int>(found.replaced));
    return el_insertstr(editor, found.insert.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
  }
  if (found.choices.empty()) return CC_ERROR;
  std::fputs(fmt::format("\n{}", in_columns(found.choices)).c_str(), stdout);
  std::fflush(stdout);
  return CC_REDISPLAY;
}

}  // namespace

LineEditor::LineEditor(std::string history_file, Complete complete_line) : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.history_file = std::move(history_file);
  state.complete = std::move(complete_line);
  // libedit converts by the locale; in the bare C locale it would drop letters beyond ASCII.
  const char* locale = std::setlocale(LC_CTYPE, "");
  if (locale == nullptr || std::string_view(locale) == "C") std::setlocale(LC_CTYPE, "C.UTF-8");

  state.editor = el_init("weft", stdin, stdout, stderr);
  el_set(state.editor, EL_CLIENTDATA, &state);
  el_set(state.editor, EL_EDITOR, "emacs");
  el_set(state.editor, EL_SIGNAL, 1);  // resizing, Ctrl-Z and SIGTERM leave the terminal in a sane state
  el_set(state.editor, EL_PROMPT, &prompt<State>);

  HistEvent event;
  state.history = history_init();
  history(state.history, &event, H_SETSIZE, kHistoryEntries);
  history(state.history, &event, H_SETUNIQUE, 1);
  if (!state.history_file.empty()) history(state.history, &event, H_LOAD, state.history_file.c_str());
  el_set(state.editor, EL_HIST, history, state.history);

  el_set(state.editor, EL_ADDFN, "weft-abandon", "discard this statement", &abandon<State>);
  el_set(state.editor, EL_ADDFN, "weft-leave", "exit, or delete forward", &leave_or_delete);
  el_set(state.editor, EL_ADDFN, "weft-complete", "complete the word", &complete<State>);
  el_set(state.editor, EL_BIND, "^C", "weft-abandon", nullptr);
  el_set(state.editor, EL_BIND, "^D", "weft-leave", nullptr);
  el_set(state.editor, EL_BIND, "^I", "weft-complete", nullptr);
  el_set(state.editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  el_set(state.editor, EL_SETTY, "-d", "intr=", nullptr);
  el_source(state.editor, nullptr);  // the user's ~/.editrc last, so that it takes precedence
}

LineEditor::~LineEditor() {
  HistEvent event;
  if (!state_->history_file.empty()) history(state_->history, &event, H_SAVE, state_->history_file.c_str());
  el_end(state_->editor);
  history_end(state_->history);
}

Line LineEditor::read(const char* prompt) {
  state_->prompt = prompt;
  state_->abandoned = false;
  int length = 0;
  const char* text = el_gets(state_->editor, &length);
  if (state_->abandoned) return {Line::Kind::abandoned, {}};
  if (text == nullptr && interrupt::requested()) {
    // A signal all the same: it came before the terminal was set up for editing.
    std::fputs("\n", stdout);
    return {Line::Kind::abandoned, {}};
  }
  if (text == nullptr || length <= 0) return {Line::Kind::end, {}};
  std::string_view line(text, static_cast<std::size_t>(length));
  if (line.ends_with('\n')) line.remove_suffix(1);
  return {Line::Kind::text, std::string(line)};
}

void LineEditor::remember(const std::string& entry) {
  HistEvent event;
  history(state_->history, &event, H_ENTER, entry.c_str());
}

}  // namespace weft
