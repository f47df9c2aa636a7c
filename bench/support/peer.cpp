#include "support/peer.h"

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

extern char** environ;

namespace weft::bench {
namespace {

using Json = nlohmann::json;

Json read_answer(const std::string& line) {
  Json answer = Json::parse(line, nullptr, false);
  return answer.is_object() ? answer : Json::object();
}

}  // namespace

Result<std::unique_ptr<Peer>> Peer::start(std::string_view model, int threads, int ranks,
                                          std::string_view script) {
  // Debian's torch package belongs to its own python.
  std::string reasons;
  for (const std::string python : {"/usr/bin/python3", "python3"}) {
    auto peer = start_with(python, model, threads, ranks, script);
    if (peer.ok()) return peer;
    reasons += (reasons.empty() ? "" : "; ") + peer.error().message;
  }
  return environment_error("no PyTorch to compare with: " + reasons, "install python3-torch");
}

Result<std::unique_ptr<Peer>> Peer::start_with(const std::string& python, std::string_view model, int threads,
                                               int ranks, std::string_view script) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return environment_error("cannot create a socket for the peer");

  std::unique_ptr<Peer> peer(new Peer);
  peer->socket_ = ends[0];
  std::array<std::string, 5> words = {python, fmt::format("{}/bench/peers/{}", WEFT_SOURCE_DIR, script),
                                      std::string(model), std::to_string(threads), std::to_string(ranks)};
  std::array<char*, 6> arguments{};
  for (std::size_t i = 0; i < words.size(); ++i) arguments[i] = words[i].data();

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  const int failed =
      posix_spawnp(&peer->process_, python.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failed != 0) {
    peer->process_ = 0;
    return environment_error(fmt::format("{} does not start", python));
  }

  const Json answer = read_answer(peer->receive());
  if (!answer.value("ready", false))
    return environment_error(fmt::format("{}: {}", python, answer.value("reason", "no answer")));
  peer->version_ = answer.value("torch", "");
  peer->processes_ = answer.value("processes", std::vector<pid_t>{peer->process_});
  peer->parameters_ = answer.value("parameters", std::int64_t{0});
  return peer;
}

Peer::~Peer() {
  if (process_ != 0) send("quit\n");
  if (socket_ >= 0) close(socket_);
  if (process_ != 0) waitpid(process_, nullptr, 0);
}

double Peer::train(std::int64_t steps) {
  std::string line;
  if (send(fmt::format("steps {}\n", steps))) line = receive();
  const Json answer = read_answer(line);
  if (!answer.contains("seconds"))
    throw std::runtime_error(
        fmt::format("expected the seconds of {} steps from PyTorch, found '{}'", steps, line));
  return answer["seconds"].get<double>();
}

bool Peer::send(std::string_view line) const {
  return ::send(socket_, line.data(), line.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(line.size());
}

std::string Peer::receive() {
  std::array<char, 4096> chunk{};
  while (true) {
    if (const std::size_t end = received_.find('\n'); end != std::string::npos) {
      const std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    const ssize_t count = recv(socket_, chunk.data(), chunk.size(), 0);
    if (count <= 0) return {};
    received_.append(chunk.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace weft::bench
