// weft/app/session/generated_text.h -- the text of GENERATE: prints it as it grows, and ends it.
//
//   stop = '\n\n'    "one\n"   passed on: "one"       "\n" may begin the stop text
//                    "two"     passed on: "\ntwo"
//                    ".\n\n"   passed on: "."         ended() is true
#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace weft::session {

class GeneratedText {
 public:
  // `on_text` receives the text in parts that are safe to print; may be empty.
  GeneratedText(std::string stop, std::function<void(std::string_view)> on_text)
      : stop_(std::move(stop)), on_text_(std::move(on_text)) {}

  void append(std::string_view text);
  void finish();  // passes on what was held back

  bool ended() const { return ended_; }              // the stop text occurred
  const std::string& text() const { return text_; }  // without the stop text

 private:
  void pass_on(std::size_t end);

  std::string stop_, text_;
  std::function<void(std::string_view)> on_text_;
  std::size_t passed_ = 0;
  bool ended_ = false;
};

// Safe for any terminal: control characters become \x1b, invalid UTF-8 becomes U+FFFD. Newlines and
// tabs stay.
std::string printable(std::string_view text);

}  // namespace weft::session
