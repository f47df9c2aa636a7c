// Sockets: addresses parse and print, and system errors are described.

#include "weft/communication/transport/tcp/socket.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

#include <cerrno>
#include <thread>

namespace {

using namespace weft::transport::tcp;
using namespace std::chrono_literals;

Deadline in(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }

TEST(TcpSocket, AddressesReadAndPrint) {
  for (const std::string text : {"127.0.0.1:41234", "[::1]:1", "node7.cluster:65535", "[fe80::1%eth0]:0"}) {
    const auto address = parse_host_port(text);
    ASSERT_TRUE(address.ok()) << text;
    EXPECT_EQ(print(*address), text);
  }
  EXPECT_EQ(*parse_host_port("[::1]:29500"), (HostPort{"::1", 29500}));
  for (const std::string_view text : {"", ":", "host", "host:", ":1", "host:65536", "host:-1", "host:1 ",
                                      "::1:5", "[]:5", "[::1]", "a:b:1"})
    EXPECT_FALSE(parse_host_port(text).ok()) << text;
}

TEST(TcpSocket, ConnectsAndCarries) {
  for (const std::string host : {"127.0.0.1", "localhost", "::1"}) {
    const auto listener = listen(host, 0);
    if (!listener.ok() && host == "::1") continue;
    ASSERT_TRUE(listener.ok()) << listener.error().message;
    const auto address = local_address(*listener);
    ASSERT_TRUE(address.ok());
    const auto nobody = accept(*listener);
    ASSERT_TRUE(nobody.ok());
    EXPECT_FALSE(*nobody) << "no connection yet";
    const auto here = connect(address->host(), address->port(), in(2s));
    ASSERT_TRUE(here.ok()) << here.error().message;
    ASSERT_TRUE(wait_for(*listener, POLLIN, in(2s)));
    auto there = accept(*listener);
    ASSERT_TRUE(there.ok());
    ASSERT_TRUE(*there);
    EXPECT_EQ(remote_address(*there)->text(), local_address(*here)->text());

    std::vector<std::byte> out(3'000'000, std::byte{7}), arrived(out.size());
    std::jthread sender([&] { EXPECT_TRUE(send_all(*here, out, in(5s)).ok()); });
    EXPECT_TRUE(receive_all(*there, arrived, in(5s)).ok());
    EXPECT_EQ(arrived, out);
    const auto silence = receive_all(*there, std::span(arrived).first(1), in(5ms));
    EXPECT_EQ(silence.error().message, "cannot receive: no answer in time");
  }
}

TEST(TcpSocket, ReportsWhyItFails) {
  std::uint16_t port = 0;
  {
    const auto listener = listen("127.0.0.1", 0);
    ASSERT_TRUE(listener.ok());
    port = local_address(*listener)->port();
    const auto second = listen("127.0.0.1", port);
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().message,
              "cannot listen on 127.0.0.1:" + std::to_string(port) + ": address in use");
    EXPECT_FALSE(second.error().hint.empty());
  }
  const auto refused = connect("127.0.0.1", port, in(2s));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message,
            "cannot connect to 127.0.0.1:" + std::to_string(port) + ": no process listens there");
  EXPECT_EQ(refused.error().fault, weft::Fault::world);
  EXPECT_FALSE(resolve("no.such.name.invalid", 1).ok());
  EXPECT_EQ(socket_error("x", ENETUNREACH).message, "x: no route");
  EXPECT_EQ(socket_error("x", EADDRNOTAVAIL).message, "x: address or port not available");
  EXPECT_EQ(socket_error("x", EMFILE).message, "x: too many open files");
  EXPECT_EQ(socket_error("x", ECONNRESET).message, "x: the peer closed the connection");
}

TEST(TcpSocket, ReportsWhenNoDescriptorIsLeft) {
  const auto listener = listen("127.0.0.1", 0);
  ASSERT_TRUE(listener.ok());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = static_cast<rlim_t>(listener->descriptor());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto address = local_address(*listener);
  const auto socket = start_connect(*address);
  ::setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_FALSE(socket.ok());
  EXPECT_NE(socket.error().message.find("too many open files"), std::string::npos) << socket.error().message;
}

}  // namespace
