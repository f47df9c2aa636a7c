// weft/runtime/exec/comm_exchanger.h -- runs exchanges as collectives of weft::comm.
//
//   mesh node=2, gpu=3          axis node: groups {0,3} {1,4} {2,5}     one communicator per axis, with
//   ranks 0 1 2                 axis gpu:  groups {0,1,2} {3,4,5}       the ranks that differ only in it
//         3 4 5
//
// Runs exactly the algorithm that the program names, compiled once, with the named priority.
// prepare() fails if the algorithm does not exist or does not apply to these ranks, or if ranks'
// programs name different ones.
//
// Low-priority exchanges have their own communicators, so that later exchanges do not wait for
// them.
//
// Messages between stages go through a mailbox (mailbox.h), which exists only for axes with
// messages.
//
// The algorithm of a collective must be the same in every run of a plan: a different order of
// summation changes the bits. So if the program leaves the choice to the communicator, open it with
// training_options(), which ignores measured times and uses direct access between ranks that share
// memory.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/comm/communicator.h"
#include "weft/plan/graph/layout.h"
#include "weft/runtime/exec/exchanger.h"
#include "weft/runtime/exec/mailbox.h"
#include "weft/runtime/exec/served_sums.h"

namespace weft::exec {

// Options of a communicator whose results are bit-identical in every run.
comm::Options training_options(comm::TransportKind transport);

// Which ranks must run the same exchanges: all, or only those of a group along an axis.
enum class Agreement : std::uint8_t { of_all, of_groups };

class CommExchanger final : public Exchanger {
 public:
  // Collective over `world`, which must have the mesh's ranks in order. `whole` has the same ranks
  // followed by the summation servers, if there are any (served_sums.h). Both must outlive the
  // exchanger.
  static Result<std::unique_ptr<CommExchanger>> open(comm::Communicator& world, const plan::Mesh& mesh,
                                                     Agreement agreement = Agreement::of_all,
                                                     comm::Communicator* whole = nullptr);

  Status prepare(std::span<const program::Exchange* const> exchanges) override;
  Result<Handle> start(const program::Exchange& exchange, const std::byte* operand,
                       std::byte* result) override;
  bool test(Handle handle) override;
  Status wait(Handle handle) override;
  Status run(const program::Exchange& exchange, const std::byte* operand, std::byte* result) override;
  void stop(const Error& why) override;
  std::byte* allocate(std::size_t bytes) override;
  void free(std::byte* memory) override;

 private:
  struct Group {
    comm::Communicator* communicator = nullptr;  // null: a group of one rank
    std::unique_ptr<comm::Communicator> own;
  };
  // The call that runs an exchange, without its buffers.
  struct Ready {
    comm::Communicator* communicator = nullptr;
    comm::Call call;
    std::vector<std::int64_t> counts;
    std::int64_t bytes = 0;  // copied by a group of one rank or a sum by servers
    std::uint32_t number = 0;
    // For messages.
    Mailbox* mailbox = nullptr;
    std::int32_t other = 0;
    comm::Tag tag = 0;
    // For sums by servers whose padded chunks are longer than the data.
    std::vector<std::byte> longer;
    std::byte* result = nullptr;
  };
  struct Served {
    ServedGroup group;
    std::unique_ptr<comm::Communicator> communicator;
  };

  CommExchanger(comm::Communicator& world, plan::Mesh mesh, Agreement agreement, comm::Communicator* whole)
      : world_(world), whole_(whole), mesh_(std::move(mesh)), agreement_(agreement) {}
  Status agree_on(std::span<const program::Exchange* const> exchanges);
  Status agree_on(std::span<const program::Exchange* const> exchanges, comm::Communicator& group,
                  std::string_view axis);
  Result<Group> make_group(std::size_t axis);
  Status open_low_groups(std::span<const program::Exchange* const> exchanges);
  Status open_served_groups(std::span<const program::Exchange* const> exchanges);
  Result<Ready> make_served(const program::Exchange& exchange);
  static void finish(const Ready& ready);
  void open_mailboxes(std::span<const program::Exchange* const> exchanges);
  Result<Ready> make_ready(const program::Exchange& exchange);
  static Status pass(const Ready& ready, program::Exchange::Kind kind);
  Ready& ready_for(const program::Exchange& exchange, const std::byte* operand, std::byte* result);
  static Result<comm::NamedAlgorithm> named(comm::Communicator& group, const program::Exchange& exchange,
                                            const comm::Call& call);

  comm::Communicator& world_;
  comm::Communicator* const whole_;
  const plan::Mesh mesh_;
  const Agreement agreement_;
  std::vector<Group> groups_;                        // by axis
  std::vector<Group> low_groups_;                    // by axis, if there are low-priority exchanges
  std::vector<Served> served_;                       // groups of this rank
  std::vector<std::unique_ptr<Mailbox>> mailboxes_;  // by axis; null without messages
  std::unordered_map<const program::Exchange*, Ready> ready_;
  std::mutex mutex_;                                  // guards under_way_
  std::vector<std::optional<comm::Work>> under_way_;  // by exchange number, which is its handle
  std::vector<const program::Exchange*> by_number_;
};

}  // namespace weft::exec
