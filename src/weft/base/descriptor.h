// weft/base/descriptor.h -- an owning file descriptor.
#pragma once
#include <unistd.h>

#include <utility>

namespace weft {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  bool valid() const { return number_ >= 0; }
  int number() const { return number_; }
  int release() { return std::exchange(number_, -1); }  // the caller must close it

 private:
  int number_;
};

}  // namespace weft
