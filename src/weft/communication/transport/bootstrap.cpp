#include "weft/communication/transport/bootstrap.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "weft/base/sha256.h"
#include "weft/communication/transport/rank_names.h"
#include "weft/communication/transport/secret.h"

namespace weft::transport {
namespace {

using Clock = std::chrono::steady_clock;

// Rank 0 knows best which ranks are missing: the others wait this long for its report.
constexpr std::chrono::milliseconds kCourtesy{1'000};

std::string derive(const std::string& secret, std::string_view what) {
  return hex(bytes_of(hmac_sha256(secret, what)));
}

std::string session_secret(const BootstrapPlan& plan, const Table& table) {
  return derive(plan.secret, "session " + table.session);
}

Circle make_circle(const BootstrapPlan& plan, const Table& table, Mesh& mesh) {
  Circle circle{plan.self.rank, {},          mesh.take_lines(), session_secret(plan, table),
                plan.timeout,   plan.traffic};
  for (const BootstrapMember& each : table.attendees) circle.members.push_back(each.member);
  return circle;
}

Mesh make_mesh(BootstrapPlan& plan, const Table& table) {
  return Mesh(plan.self.rank, table, derive(session_secret(plan, table), "mesh"), plan.traffic,
              std::move(plan.doors));
}

Error ended(std::int32_t rank) {
  return environment_error(fmt::format("rank {} ended while the ranks were connecting", rank));
}

Error no_line(const Mesh& mesh, const BootstrapPlan& plan) {
  const auto missing = mesh.missing();
  const std::string why = mesh.why_missing(missing.front());
  return environment_error(
      fmt::format("rank {} could not connect to {} within {}{}{}", plan.self.rank, name_ranks(missing),
                  print_time(plan.timeout), why.empty() ? "" : ": ", why),
      "can these hosts reach each other? WEFT_LISTEN sets the address that a rank listens on");
}

void wait(std::vector<pollfd>& wanted, Deadline deadline) {
  ::poll(wanted.data(), wanted.size(), tcp::milliseconds_until(deadline));
}

void add_line(std::vector<pollfd>& wanted, const ControlLink& line) {
  wanted.push_back({line.descriptor(), static_cast<short>(line.has_queued() ? POLLIN | POLLOUT : POLLIN), 0});
}

class Host {
 public:
  Host(BootstrapPlan plan, tcp::Socket listener, bool local)
      : plan_(std::move(plan)),
        deadline_(Clock::now() + plan_.timeout),
        came_(static_cast<std::size_t>(plan_.self.ranks)),
        visitors_(came_.size()),
        ready_(came_.size()) {
    came_[0] = plan_.self;
    ready_[0] = true;
    acceptor_.emplace(derive(plan_.secret, "rendezvous"), plan_.traffic);
    acceptor_->open(std::move(listener), local);
  }

  Result<Circle> run() {
    for (;;) {
      if (Status status = step(); !status.ok()) {
        for (ControlLink& line : visitors_) line.send(FrameKind::failed, 0, 0, print(status.error()));
        return status.error();
      }
      if (mesh_ && mesh_->complete() && std::ranges::count(ready_, false) == 0) break;
      std::vector<pollfd> wanted;
      if (acceptor_) acceptor_->add_to(wanted);
      if (mesh_) mesh_->add_to(wanted);
      for (const ControlLink& line : visitors_) {
        if (line) add_line(wanted, line);
      }
      wait(wanted, std::min(deadline_, mesh_ ? mesh_->next_try() : deadline_));
    }
    for (ControlLink& line : visitors_) line.send(FrameKind::go, 0, 0, {});
    return make_circle(plan_, table_, *mesh_);
  }

 private:
  Status step() {
    if (acceptor_) {
      WEFT_TRY(guests, acceptor_->step());
      for (Acceptor::AcceptedLink& guest : guests) WEFT_TRY_STATUS(admit(std::move(guest)));
    }
    for (std::size_t rank = 1; rank < visitors_.size(); ++rank) WEFT_TRY_STATUS(listen_to(rank));
    if (!mesh_ && missing().empty()) open_table();
    if (mesh_) WEFT_TRY_STATUS(mesh_->step());
    if (Clock::now() < deadline_) return {};
    if (!mesh_) return late();
    if (!mesh_->complete()) return no_line(*mesh_, plan_);
    std::vector<std::int32_t> slow;
    for (std::size_t rank = 0; rank < ready_.size(); ++rank) {
      if (!ready_[rank]) slow.push_back(static_cast<std::int32_t>(rank));
    }
    return environment_error(fmt::format("{} did not connect to all other ranks within {}", name_ranks(slow),
                                         print_time(plan_.timeout)));
  }

  Status admit(Acceptor::AcceptedLink guest) {
    const auto hello =
        guest.first.kind == FrameKind::hello ? parse_bootstrap_member(guest.first.bytes) : std::nullopt;
    if (!hello) return {};
    const std::int32_t ranks = plan_.self.ranks;
    std::optional<Error> wrong;
    if (hello->ranks != ranks || hello->rank <= 0 || hello->rank >= ranks) {
      wrong = user_error(fmt::format("rank {} was started with WORLD_SIZE {}, rank 0 with {}", hello->rank,
                                     hello->ranks, ranks),
                         "start all ranks with the same WORLD_SIZE");
    } else if (const auto& first = came_[static_cast<std::size_t>(hello->rank)]) {
      wrong = user_error(fmt::format("rank {} connected twice: process {} and process {}", hello->rank,
                                     first->member.process, hello->member.process),
                         "give every process its own RANK");
    }
    if (wrong) {
      guest.line.send(FrameKind::failed, 0, 0, print(*wrong));
      return *std::move(wrong);
    }
    const auto rank = static_cast<std::size_t>(hello->rank);
    came_[rank] = *hello;
    visitors_[rank] = std::move(guest.line);
    for (ControlLink& line : visitors_) line.send(FrameKind::waiting, 0, 0, attendance());
    return {};
  }

  Status listen_to(std::size_t rank) {
    ControlLink& line = visitors_[rank];
    if (!line) return {};
    line.flush();
    for (const Frame& frame : line.receive()) {
      if (frame.kind == FrameKind::ready) ready_[rank] = true;
      if (frame.kind == FrameKind::failed) return parse_failure(frame.bytes);
    }
    if (line.state() != ControlLink::State::open) return ended(static_cast<std::int32_t>(rank));
    return {};
  }

  void open_table() {
    acceptor_.reset();  // all ranks have connected
    table_.session = hex(random_bytes(16));
    for (const auto& each : came_) table_.attendees.push_back(*each);
    for (ControlLink& line : visitors_) line.send(FrameKind::table, 0, 0, print(table_));
    mesh_.emplace(make_mesh(plan_, table_));
  }

  std::vector<std::int32_t> missing() const {
    std::vector<std::int32_t> out;
    for (std::size_t rank = 0; rank < came_.size(); ++rank) {
      if (!came_[rank]) out.push_back(static_cast<std::int32_t>(rank));
    }
    return out;
  }

  std::string attendance() const {
    const auto absent = missing();
    return fmt::format("{} of {} ranks connected within {}: {} {} missing", came_.size() - absent.size(),
                       came_.size(), print_time(plan_.timeout), name_ranks(absent),
                       absent.size() == 1 ? "is" : "are");
  }

  Error late() const {
    if (const std::int32_t unlike = acceptor_->accept_queue().unlike(); unlike > 0) {
      const bool sealed = plan_.traffic == Traffic::sealed;
      return environment_error(
          fmt::format("{}; {} {} {}", attendance(), unlike,
                      unlike == 1 ? "connected process" : "connected processes",
                      sealed ? "sent unencrypted data, rank 0 encrypts" : "used encryption, rank 0 does not"),
          "set WEFT_SECURE=1 for every rank or for none");
    }
    if (const std::int32_t refused = acceptor_->accept_queue().refused(); refused > 0) {
      return environment_error(
          fmt::format("{}; {} {} not have the job's secret", attendance(), refused,
                      refused == 1 ? "connected process does" : "connected processes do"),
          "give every rank the same WEFT_JOB_SECRET");
    }
    return environment_error(
        attendance(), "check that all ranks have the same MASTER_ADDR and MASTER_PORT and can reach it");
  }

  BootstrapPlan plan_;
  Deadline deadline_;
  std::optional<Acceptor> acceptor_;
  std::vector<std::optional<BootstrapMember>> came_;
  std::vector<ControlLink> visitors_;
  std::vector<bool> ready_;
  Table table_;
  std::optional<Mesh> mesh_;
};

class Visitor {
 public:
  Visitor(BootstrapPlan plan, Dial dial, const std::string& where)
      : plan_(std::move(plan)),
        deadline_(Clock::now() + plan_.timeout),
        caller_(std::move(dial), derive(plan_.secret, "rendezvous"), plan_.traffic, "rank 0 at " + where) {}

  Result<Circle> run() {
    while (!go_) {
      if (Status status = step(); !status.ok()) {
        line_.send(FrameKind::failed, 0, 0, print(status.error()));
        return status.error();
      }
      if (go_) break;
      std::vector<pollfd> wanted;
      if (line_)
        add_line(wanted, line_);
      else
        caller_.add_to(wanted);
      if (mesh_) mesh_->add_to(wanted);
      Deadline until = line_ ? deadline_ : std::min(deadline_, caller_.next_try());
      if (mesh_) until = std::min(until, mesh_->next_try());
      wait(wanted, until);
    }
    return make_circle(plan_, table_, *mesh_);
  }

 private:
  Status step() {
    if (!line_) {
      const Client::State state = caller_.step();
      if (state == Client::State::refused) return caller_.error();
      if (state == Client::State::through) {
        line_ = caller_.take_line();
        deadline_ += kCourtesy;
        line_.send(FrameKind::hello, 0, 0, print(plan_.self));
      }
    }
    if (line_) WEFT_TRY_STATUS(listen());
    if (mesh_ && !go_) {
      WEFT_TRY_STATUS(mesh_->step());
      if (mesh_->complete() && !std::exchange(ready_, true)) line_.send(FrameKind::ready, 0, 0, {});
    }
    if (go_ || Clock::now() < deadline_) return {};
    if (mesh_ && !mesh_->complete()) return no_line(*mesh_, plan_);
    if (!attendance_.empty()) return environment_error(attendance_);
    return environment_error(
        fmt::format("{} does not answer within {}: {}", caller_.peer(), print_time(plan_.timeout),
                    line_ ? "it sends nothing" : caller_.error().message),
        line_ ? std::string() : caller_.error().hint);
  }

  Status listen() {
    line_.flush();
    for (const Frame& frame : line_.receive()) {
      if (frame.kind == FrameKind::failed) return parse_failure(frame.bytes);
      if (frame.kind == FrameKind::waiting) attendance_ = frame.bytes;
      if (frame.kind == FrameKind::table) WEFT_TRY_STATUS(sit_down(frame.bytes));
      if (frame.kind == FrameKind::go && ready_) {
        go_ = true;
        return {};
      }
    }
    if (line_.state() != ControlLink::State::open) return ended(0);
    return {};
  }

  Status sit_down(std::string_view text) {
    const auto table = parse_table(text);
    if (!table || mesh_ || table->attendees.size() != static_cast<std::size_t>(plan_.self.ranks)) {
      return environment_error(fmt::format("{} sent no table of {} ranks", caller_.peer(), plan_.self.ranks));
    }
    table_ = *table;
    mesh_.emplace(make_mesh(plan_, table_));
    return {};
  }

  BootstrapPlan plan_;
  Deadline deadline_;
  Client caller_;
  ControlLink line_;
  std::string attendance_;
  Table table_;
  std::optional<Mesh> mesh_;
  bool ready_ = false, go_ = false;
};

}  // namespace

Result<Circle> bootstrap_root(BootstrapPlan plan, tcp::Socket listener, bool local) {
  return Host(std::move(plan), std::move(listener), local).run();
}

Result<Circle> bootstrap_client(BootstrapPlan plan, Dial dial, const std::string& where) {
  return Visitor(std::move(plan), std::move(dial), where).run();
}

}  // namespace weft::transport
