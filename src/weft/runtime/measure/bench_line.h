// weft/runtime/measure/bench_line.h -- lines over a Unix socket, between `weft bench` and one of its ranks.
//
// The address is a name of the abstract namespace: no file, nothing to leave behind. Whoever connects must be
// of the same user.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "weft/base/result.h"

namespace weft::measure {

class BenchLine {
 public:
  static Result<BenchLine> connect(std::string_view name);
  // Takes over a socket that somebody connected to.
  explicit BenchLine(int socket) : socket_(socket) {}
  ~BenchLine();
  BenchLine(BenchLine&& other) noexcept;
  BenchLine& operator=(BenchLine&& other) noexcept;

  int socket() const { return socket_; }

  bool write(std::string_view line);  // its end is added; false when the other side is gone

  // The next line without its end; none when the other side is gone or says more than a line may have.
  std::optional<std::string> read();

  // The same in pieces, for whoever polls several: takes in what is there. False when the other side is gone.
  bool receive();
  std::optional<std::string> next();

 private:
  int socket_ = -1;
  std::string received_;
};

// Listens under a name that nobody else has.
class BenchListener {
 public:
  static Result<BenchListener> open();
  ~BenchListener();
  BenchListener(BenchListener&& other) noexcept;
  BenchListener& operator=(BenchListener&&) = delete;

  const std::string& name() const { return name_; }
  int socket() const { return socket_; }

  struct Caller {
    BenchLine line;
    int process = 0;  // as the kernel says
  };
  // Somebody of this user who has called; none if nobody has.
  std::optional<Caller> accept();

 private:
  BenchListener(int socket, std::string name) : socket_(socket), name_(std::move(name)) {}

  int socket_ = -1;
  std::string name_;
};

}  // namespace weft::measure
