// output.h -- standard output that detects write errors.
//
// A full disk, a closed descriptor or a closed pipe (`weft ... | head -1`) loses output, but not
// work. The first failed write prints a warning, the statements continue, and the exit code reports
// the loss.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace weft {

// Call before opening any file: redirects closed standard descriptors to /dev/null, so that no file
// gets their numbers and receives our output. Writing to them still fails.
void reserve_standard_descriptors();

// Exit code of a rank that succeeded but could not print its output. It must not be restarted.
inline constexpr int kOutputLost = 5;

class Output {
 public:
  Output();  // makes SIGPIPE and SIGXFSZ write errors instead of fatal signals

  // Replaces invalid UTF-8, which names and data may contain.
  void write(std::string_view text);    // and flushes, so that output appears at once
  void pass_on(std::string_view text);  // another program's output, unchanged
  void silence() { silent_ = true; }    // discards all later output
  bool broken() const { return broken_; }
  // The exit code of a program that would end with `code`; lost output is a world error.
  int exit_code(int code) const;

 private:
  bool broken_ = false;  // a write has failed
  bool silent_ = false;
};

// The line width: COLUMNS, or the terminal's up to the usual width. For a file: the usual width.
std::size_t output_width();

// The same, but unlimited for a file without COLUMNS: for lines that programs read as well.
std::size_t screen_width();

void complain(std::string_view text);  // to standard error

// The system's message for an errno, in lower case: "no such file or directory".
std::string reason(int error_number);

}  // namespace weft
