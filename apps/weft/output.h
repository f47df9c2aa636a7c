// output.h -- standard output, watched: what was not written is not passed over in silence.
//
// A full disk, a closed descriptor or a reader that went away (`weft ... | head -1`) costs the answers, not the
// work: the first write that fails is a warning, the statements go on, and the exit code tells.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace weft {

// Before anything is opened: gives standard descriptors that are closed to /dev/null, so that no file of ours
// takes their numbers and what is printed. Writing to them fails as before.
void hold_standard_descriptors();

// The exit code of a rank that has done everything but print it, to a launcher that restarts ranks: it must not restart
// those.
inline constexpr int kAnswersLost = 5;

class Output {
 public:
  Output();  // from now on a closed pipe and a file that may not grow are errors to look at, not signals that kill

  void write(std::string_view text);  // and flush: answers appear as they come
  void silence() { silent_ = true; }  // writes nothing from now on
  bool broken() const { return broken_; }
  // Of a program that would end with `code`: an output that was lost is an error of the world.
  int exit_code(int code) const;

 private:
  bool broken_ = false;  // a write has failed
  bool silent_ = false;
};

// How wide answers may be: what COLUMNS says, or else the terminal, up to the usual width; in a file or a pipe that.
std::size_t output_width();

void complain(std::string_view text);  // to standard error

// The system's words for an errno, begun in lower case: "no such file or directory".
std::string reason(int error_number);

}  // namespace weft
