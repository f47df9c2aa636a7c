#include "line_editor.h"

#include <cerrno>
#include <cstdio>

#include "interrupt.h"

namespace weft {

struct LineEditor::State {};

LineEditor::LineEditor(std::string, Complete) {}
LineEditor::~LineEditor() = default;
void LineEditor::remember(const std::string&) {}

Line LineEditor::read(const char* prompt) {
  std::fputs(prompt, stdout);
  std::fflush(stdout);
  Line line;
  for (;;) {
    const int c = std::getc(stdin);
    if (c == '\n') return line;
    if (c != EOF) {
      line.text += static_cast<char>(c);
      continue;
    }
    const bool stopped = std::ferror(stdin) && errno == EINTR;
    std::clearerr(stdin);
    if (stopped && !interrupt::requested()) continue;  // another signal: keep reading
    if (!stopped && !line.text.empty()) return line;   // the last line, without its newline
    std::fputs("\n", stdout);
    return Line{stopped ? Line::Kind::abandoned : Line::Kind::end, {}};
  }
}

}  // namespace weft
