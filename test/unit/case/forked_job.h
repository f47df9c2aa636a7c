// test/unit/case/forked_job.h -- a minimal job for two processes: a socket pair, no failure detection.
//
// Created before fork(); each process then calls become() with its rank.
#pragma once
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <string>

#include "weft/communication/transport/job.h"

namespace weft::transport {

class ForkedJob final : public Job {
 public:
  ForkedJob() {
    WEFT_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets_.data()) == 0);
    members_[0].host = members_[1].host = "here";
  }
  ~ForkedJob() override {
    for (const int socket : sockets_) close(socket);
  }

  void become(std::int32_t rank) {
    rank_ = rank;
    // So that the peer's exit is noticed. The timeout ends a test whose peer hangs.
    close(std::exchange(sockets_[1 - rank], -1));
    const timeval limit{10, 0};
    setsockopt(sockets_[rank], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }

  std::int32_t rank() const override { return rank_; }
  std::int32_t ranks() const override { return 2; }
  const Member& member(std::int32_t rank) const override { return members_[rank]; }
  std::chrono::milliseconds timeout() const override { return std::chrono::seconds(10); }

  Result<std::vector<Parcel>> exchange(std::span<const std::int32_t>, Topic, Parcel mine) override {
    std::vector<Parcel> all(2);
    all[rank_].bytes = mine.bytes;
    iovec bytes{mine.bytes.data(), mine.bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    if (mine.descriptor >= 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      cmsghdr* const header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(header), &mine.descriptor, sizeof(int));
    }
    if (sendmsg(sockets_[rank_], &message, MSG_NOSIGNAL) < 0) return environment_error("the other is gone");
    std::string buffer(4096, '\0');
    iovec into{buffer.data(), buffer.size()};
    message = {};
    message.msg_iov = &into;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = recvmsg(sockets_[rank_], &message, MSG_CMSG_CLOEXEC);
    if (got <= 0) return environment_error("the other is gone or silent");
    Parcel& theirs = all[1 - rank_];
    theirs.bytes = buffer.substr(0, static_cast<std::size_t>(got));
    if (const cmsghdr* const header = CMSG_FIRSTHDR(&message))
      std::memcpy(&theirs.descriptor, CMSG_DATA(header), sizeof(int));
    return all;
  }

  void send(std::int32_t, Topic, std::string_view) override {}
  void handle(std::uint64_t, Handler) override {}
  std::vector<Death> deaths() const override { return {}; }
  std::uint64_t on_death(DeathListener) override { return 0; }
  void forget(std::uint64_t) override {}
  Result<std::vector<std::int32_t>> agree_on_survivors(std::span<const std::int32_t>, Topic) override {
    return environment_error("not among two");
  }
  void on_doctor_query(std::function<std::string()>) override {}
  void leave() override {}

 private:
  std::array<int, 2> sockets_{-1, -1};
  std::array<Member, 2> members_;
  std::int32_t rank_ = 0;
};

}  // namespace weft::transport
