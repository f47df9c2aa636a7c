// weft/torch/rendezvous.h -- how the ranks of a process group find each other.
//
//   rank r   store: weft/host/r = boot id, network namespace, user
//   rank 0   store: weft/where  = address and secret, when all hosts are known
//   all      weft_join(address, secret)
//
// On one host the address is a name (an abstract Unix socket); otherwise a host and port of rank 0.
#pragma once
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "group.h"

namespace weft_torch {

namespace rendezvous {

inline std::string read_line(const char* path) {
  char text[256] = {};
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return "";
  const ssize_t length = ::read(file, text, sizeof text - 1);
  ::close(file);
  const std::string all(text, length > 0 ? static_cast<size_t>(length) : 0);
  return all.substr(0, all.find('\n'));
}

inline std::string host_identity() {
  char name[256] = {};
  const ssize_t length = ::readlink("/proc/self/ns/net", name, sizeof name - 1);
  return read_line("/proc/sys/kernel/random/boot_id") + " " + (length > 0 ? name : "") + " " +
         std::to_string(::geteuid());
}

inline std::string random_hex(int bytes) {
  std::random_device source;
  std::string text;
  for (int i = 0; i < bytes; ++i) {
    const unsigned value = source() & 255u;
    text += "0123456789abcdef"[value >> 4];
    text += "0123456789abcdef"[value & 15u];
  }
  return text;
}

// The numeric address of this host that others can reach: the one from which packets to MASTER_ADDR
// leave, or that of its host name.
inline std::string own_address() {
  if (const char* listen = std::getenv("WEFT_LISTEN")) return listen;
  const auto usable = [](const std::string& text) {
    return !text.empty() && text.rfind("127.", 0) != 0 && text != "::1";
  };
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  const char* const master = std::getenv("MASTER_ADDR");
  for (const char* const name : {master, static_cast<const char*>(host)}) {
    if (name == nullptr) continue;
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_DGRAM;
    if (::getaddrinfo(name, "9", &hints, &found) != 0) continue;
    std::string address;
    for (const addrinfo* each = found; each != nullptr && address.empty(); each = each->ai_next) {
      const int probe = ::socket(each->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
      sockaddr_storage own{};
      socklen_t length = sizeof own;
      char text[NI_MAXHOST] = {};
      if (probe >= 0 && ::connect(probe, each->ai_addr, each->ai_addrlen) == 0 &&
          ::getsockname(probe, reinterpret_cast<sockaddr*>(&own), &length) == 0 &&
          ::getnameinfo(reinterpret_cast<sockaddr*>(&own), length, text, sizeof text, nullptr, 0,
                        NI_NUMERICHOST) == 0 &&
          usable(text))
        address = text;
      if (probe >= 0) ::close(probe);
    }
    ::freeaddrinfo(found);
    if (!address.empty()) return address;
  }
  throw std::runtime_error(
      "weft: rank 0 found no address that other hosts can reach: set WEFT_LISTEN to one, or MASTER_ADDR to a "
      "name "
      "that is not this host's loopback");
}

// "10.0.0.1:41234", with a port that is free now.
inline std::string free_place(const std::string& address) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_PASSIVE;
  if (::getaddrinfo(address.c_str(), "0", &hints, &found) != 0)
    throw std::runtime_error("weft: expected a numeric address to listen on, found " + address);
  const int probe = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  char port[NI_MAXSERV] = {};
  const bool bound = probe >= 0 && ::bind(probe, found->ai_addr, found->ai_addrlen) == 0 &&
                     ::getsockname(probe, reinterpret_cast<sockaddr*>(&own), &length) == 0 &&
                     ::getnameinfo(reinterpret_cast<sockaddr*>(&own), length, nullptr, 0, port, sizeof port,
                                   NI_NUMERICSERV) == 0;
  ::freeaddrinfo(found);
  if (probe >= 0) ::close(probe);
  if (!bound) throw std::runtime_error("weft: rank 0 cannot listen on " + address);
  return (address.find(':') == std::string::npos ? address : "[" + address + "]") + ":" + port;
}

inline std::string read(c10d::Store& store, const std::string& key) {
  const std::vector<uint8_t> value = store.get(key);
  return std::string(value.begin(), value.end());
}

inline void write(c10d::Store& store, const std::string& key, const std::string& value) {
  store.set(key, std::vector<uint8_t>(value.begin(), value.end()));
}

inline std::string wait_for(c10d::Store& store, const std::string& key, int rank, int size,
                            Milliseconds timeout) {
  try {
    store.wait({key}, timeout);
  } catch (const std::exception& error) {
    throw std::runtime_error("weft: rank " + std::to_string(rank) + " of " + std::to_string(size) +
                             " did not create the process group within " +
                             std::to_string(timeout.count() / 1000.0) + " s: " + error.what());
  }
  return read(store, key);
}

// Rank 0: waits for all ranks, and returns where they shall connect.
inline std::string choose_place(c10d::Store& store, int size, const std::string& own, bool over_sockets,
                                Milliseconds timeout) {
  bool one_host = true;
  for (int rank = 1; rank < size; ++rank)
    one_host &= wait_for(store, "weft/host/" + std::to_string(rank), rank, size, timeout) == own;
  if (one_host && !over_sockets) return "c10d-" + random_hex(16);
  return free_place(one_host ? "127.0.0.1" : own_address());
}

}  // namespace rendezvous

// Connects the ranks of a process group. WEFT_TORCH_TRANSPORT names a transport: "shm", "tcp".
inline std::shared_ptr<Group> join(c10d::Store& store, int rank, int size, Milliseconds timeout) {
  using namespace rendezvous;
  const char* const transport = std::getenv("WEFT_TORCH_TRANSPORT");
  const bool over_sockets = transport != nullptr && std::string(transport) == "tcp";
  std::string where = "alone", secret = "alone";
  if (size > 1) {
    const std::string own = host_identity();
    if (rank == 0) {
      where = choose_place(store, size, own, over_sockets, timeout);
      secret = random_hex(32);
      write(store, "weft/where", where + "\n" + secret);
    } else {
      write(store, "weft/host/" + std::to_string(rank), own);
      const std::string said = wait_for(store, "weft/where", 0, size, timeout);
      where = said.substr(0, said.find('\n'));
      secret = said.substr(said.find('\n') + 1);
    }
  }
  // All ranks have arrived. This also is the time after which a silent host counts as lost.
  const Milliseconds patience = std::min(std::max(timeout, Milliseconds(1000)), Milliseconds(60'000));
  weft_options options{};
  options.transport = transport;
  weft_comm *comm = nullptr, *messages = nullptr;
  int status = library().join(where.c_str(), secret.c_str(), patience.count(), rank, size, &options, &comm);
  if (status == WEFT_OK) status = library().split(comm, 0, rank, &messages);
  if (status != WEFT_OK)
    throw std::runtime_error("weft: rank " + std::to_string(rank) + " of " + std::to_string(size) +
                             " cannot join its process group: " + library().last_error());
  return std::make_shared<Group>(comm, messages, rank, size);
}

}  // namespace weft_torch
