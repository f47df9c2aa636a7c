// bench/support/peer.h -- PyTorch in a separate process, trained on demand.
//
//   WEFT_TRY(peer, Peer::start("digits_mlp", 1));
//   double seconds = peer->train(20);      // for 20 steps
//
// With several ranks, it uses DistributedDataParallel over Gloo, with `threads` threads per rank.
// The other side is bench/peers/torch_training.py, which documents the protocol, or another script
// there with the same protocol.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft::bench {

class Peer {
 public:
  // Fails, with the reason, if there is no python with torch.
  static Result<std::unique_ptr<Peer>> start(std::string_view model, int threads, int ranks = 1,
                                             std::string_view script = "torch_training.py");
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // Runs this many steps and returns their seconds. Throws if the peer has exited.
  double train(std::int64_t steps);

  const std::string& version() const { return version_; }
  std::int64_t parameter_elements() const { return parameters_; }
  const std::vector<pid_t>& processes() const { return processes_; }  // one per rank

 private:
  Peer() = default;
  static Result<std::unique_ptr<Peer>> start_with(const std::string& python, std::string_view model,
                                                  int threads, int ranks, std::string_view script);
  bool send(std::string_view line) const;
  std::string receive();  // a line without its newline; empty if the peer has exited

  pid_t process_ = 0;
  int socket_ = -1;
  std::vector<pid_t> processes_;
  std::string received_, version_;
  std::int64_t parameters_ = 0;
};

}  // namespace weft::bench
