// output.h -- standard output, watched: what was not written is not passed over in silence.
//
// A reader that went away (`weft ... | head -1`) has had enough: the rest is dropped quietly and
// the program ends well. Anything else that keeps bytes from being written is the world's fault.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "weft/base/result.h"

namespace weft {

class Output {
 public:
  Output();  // from now on a closed pipe is an error to look at, not a signal that kills

  void write(std::string_view text);  // and flush: answers appear as they come
  void silence() { silent_ = true; }  // writes nothing from now on
  bool broken() const { return failure_ != 0; }
  Status status() const;  // ok unless a write failed for another reason than a reader gone

 private:
  int failure_ = 0;  // the errno of the first write that failed
  bool silent_ = false;
};

// How wide answers may be: what COLUMNS says, or else the terminal; in a file or a pipe the usual width.
std::size_t output_width();

void complain(std::string_view text);  // to standard error

// The system's words for an errno, begun in lower case: "no such file or directory".
std::string reason(int error_number);

}  // namespace weft
