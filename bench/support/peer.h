// bench/support/peer.h -- PyTorch in a process of its own, trained on demand.
//
//   WEFT_TRY(peer, Peer::start("digits_mlp", 1));
//   double seconds = peer->train(20);      // of 20 steps
//
// With several ranks a step is DistributedDataParallel's over Gloo, `threads` in each.
// The other end is bench/peers/torch_training.py, which says what the lines between the two are, or another script there
// that speaks the same.
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
  // Fails, with the reason, when there is no python with torch.
  static Result<std::unique_ptr<Peer>> start(std::string_view model, int threads, int ranks = 1,
                                             std::string_view script = "torch_training.py");
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // Seconds of so many steps; throws when the peer is gone.
  double train(std::int64_t steps);

  const std::string& version() const { return version_; }
  std::int64_t parameter_elements() const { return parameters_; }
  const std::vector<pid_t>& processes() const { return processes_; }  // one for each rank

 private:
  Peer() = default;
  static Result<std::unique_ptr<Peer>> start_with(const std::string& python, std::string_view model,
                                                  int threads, int ranks, std::string_view script);
  bool send(std::string_view line) const;
  std::string receive();  // a line without its end; empty when the peer is gone

  pid_t process_ = 0;
  int socket_ = -1;
  std::vector<pid_t> processes_;
  std::string received_, version_;
  std::int64_t parameters_ = 0;
};

}  // namespace weft::bench
