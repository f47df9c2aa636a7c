// weft/runtime/measure/bench_line.h -- lines over a Unix socket between `weft bench` and one of its ranks.
//
// The address is in the abstract namespace, so there is no file to clean up. Clients must belong to
// the same user.
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
  // Takes ownership of a connected socket.
  explicit BenchLine(int socket) : socket_(socket) {}
  ~BenchLine();
  BenchLine(BenchLine&& other) noexcept;
  BenchLine& operator=(BenchLine&& other) noexcept;

  int socket() const { return socket_; }

  bool write(std::string_view line);  // adds the line end; false if the peer is gone

  // The next line without its end; empty if the peer is gone or the line is too long.
  std::optional<std::string> read();

  // The same without blocking, for polling several: reads what has arrived. Returns false if the
  // peer is gone.
  bool receive();
  std::optional<std::string> next();

 private:
  int socket_ = -1;
  std::string received_;
};

// Listens on a unique name.
class BenchListener {
 public:
  static Result<BenchListener> open();
  ~BenchListener();
  BenchListener(BenchListener&& other) noexcept;
  BenchListener& operator=(BenchListener&&) = delete;

  const std::string& name() const { return name_; }
  int socket() const { return socket_; }

  struct Client {
    BenchLine line;
    int process = 0;  // pid reported by the kernel
  };
  // The next connection from the same user; empty if there is none.
  std::optional<Client> accept();

 private:
  BenchListener(int socket, std::string name) : socket_(socket), name_(std::move(name)) {}

  int socket_ = -1;
  std::string name_;
};

}  // namespace weft::measure
