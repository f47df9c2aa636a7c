// weft/runtime/exec/comm_exchanger.h -- exchanges as collectives of weft::comm.
//
//   mesh node=2, gpu=3          axis node: groups {0,3} {1,4} {2,5}     a communicator for each axis, made of
//   ranks 0 1 2                 axis gpu:  groups {0,1,2} {3,4,5}       the ranks that differ along it alone
//         3 4 5
//
// What a program names runs: its algorithm, compiled once, and its priority. A name that does not exist, or is
// not for these ranks, fails in prepare(), as do ranks whose programs name different ones.
//
// Exchanges of low priority have communicators of their own: nobody who comes after them has to wait.
//
// What one stage sends another goes through a mailbox (mailbox.h), which its ranks open where their programs have
// messages.
//
// Which algorithm runs a collective must not differ between two runs of one plan: sums in another order have
// other bits. So where the program leaves it to the communicator, that is to be opened with
// training_options(): no measured times, direct access where ranks share memory.
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

// Of a communicator whose results have the same bits on every run.
comm::Options training_options(comm::TransportKind transport);

// Who must run the same exchanges: all ranks, or those of a group along an axis where groups have numbers of their own.
enum class Agreement : std::uint8_t { of_all, of_groups };

class CommExchanger final : public Exchanger {
 public:
  // Collective over `world`, which must outlive it and have the mesh's ranks in order. `whole` has these and then
  // servers, where sums are given to some (served_sums.h), and must outlive it too.
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
    comm::Communicator* communicator = nullptr;  // null: a rank alone
    std::unique_ptr<comm::Communicator> own;
  };
  // An exchange as the call that runs it, but for its memory.
  struct Ready {
    comm::Communicator* communicator = nullptr;
    comm::Call call;
    std::vector<std::int64_t> counts;
    std::int64_t bytes = 0;  // of a rank alone, and of a sum by servers: what is copied
    std::uint32_t number = 0;
    // Of a message.
    Mailbox* mailbox = nullptr;
    std::int32_t other = 0;
    comm::Tag tag = 0;
    // Of a sum by servers whose chunks are longer than the data.
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
  std::vector<Group> low_groups_;                    // likewise, where there are exchanges of low priority
  std::vector<Served> served_;                       // this rank's
  std::vector<std::unique_ptr<Mailbox>> mailboxes_;  // by axis; none where no messages go
  std::unordered_map<const program::Exchange*, Ready> ready_;
  std::mutex mutex_;                                  // of what follows
  std::vector<std::optional<comm::Work>> under_way_;  // by number of the exchange: its handle
  std::vector<const program::Exchange*> by_number_;
};

}  // namespace weft::exec
