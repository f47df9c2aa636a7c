#include "weft/communication/transport/doctor.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <set>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "weft/base/file.h"
#include "weft/base/sha256.h"
#include "weft/communication/transport/secret.h"
#include "weft/communication/transport/unix_socket.h"

namespace weft::transport {
namespace {

constexpr std::string_view kName = "weft-doctor-";
constexpr std::int64_t kMostSockets = 64 << 20;  // bytes of /proc/net/unix
constexpr std::size_t kMostAnswer = 4 << 20;
constexpr std::string_view kGone = "gone";

struct Question {
  tcp::Socket socket;
  std::string answer;
  bool done = false;
};

pid_t process_of(std::string_view name) {
  pid_t process = 0;
  name.remove_prefix(kName.size());
  const auto read = std::from_chars(name.data(), name.data() + name.size(), process);
  const bool whole = read.ec == std::errc() && (read.ptr == name.data() + name.size() || *read.ptr == '.');
  return whole ? process : 0;
}

// Lines end in names like "@weft-doctor-4711.5f..."; a listener and its connections have the same
// name.
std::set<std::string> names_in(std::string_view sockets) {
  std::set<std::string> names;
  while (!sockets.empty()) {
    const std::string_view line = sockets.substr(0, sockets.find('\n'));
    sockets.remove_prefix(std::min(sockets.size(), line.size() + 1));
    const std::size_t at = line.rfind('@');
    if (at == std::string_view::npos || !line.substr(at + 1).starts_with(kName)) continue;
    if (process_of(line.substr(at + 1)) > 0) names.emplace(line.substr(at + 1));
  }
  return names;
}

std::string state_of(pid_t process) {
  const Result<std::string> status = read_file(fmt::format("/proc/{}/status", process), 1 << 16);
  if (!status.ok()) return std::string(kGone);
  const std::size_t at = status->find("State:\t");
  if (at == std::string::npos) return "unknown";
  const std::string line = status->substr(at + 7, status->find('\n', at) - at - 7);
  const std::size_t open = line.find('(');
  if (open == std::string::npos) return line;
  return fmt::format("{} ({})", line.substr(open + 1, line.find(')') - open - 1), line.substr(0, 1));
}

void read_answer(Question& question) {
  char buffer[16 << 10];
  for (;;) {
    const ssize_t came = ::recv(question.socket.descriptor(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (came < 0 && errno == EINTR) continue;
    if (came < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (came <= 0 || question.answer.size() > kMostAnswer) {
      question.done = true;
      return;
    }
    question.answer.append(buffer, static_cast<std::size_t>(came));
  }
}

bool is_other_users(pid_t process) {
  struct stat about = {};
  if (::geteuid() == 0 || ::stat(fmt::format("/proc/{}", process).c_str(), &about) != 0) return false;
  return about.st_uid != ::geteuid();
}

RankReport diagnose(const std::string& name, Question question) {
  RankReport patient;
  patient.process = process_of(name);
  patient.answer = std::move(question.answer);
  if (const std::size_t at = patient.answer.find(kFiguresSeparator); at != std::string::npos) {
    patient.figures = patient.answer.substr(at + 1);
    patient.answer.resize(at);
  }
  if (std::sscanf(patient.answer.c_str(), "rank %d of %d,", &patient.rank, &patient.ranks) != 2) {
    patient.rank = -1;
    patient.ranks = 0;
  }
  if (!question.done || patient.answer.empty()) {
    patient.answer.clear();
    patient.state = is_other_users(patient.process) ? "another user's" : state_of(patient.process);
  }
  return patient;
}

}  // namespace

Result<std::vector<RankReport>> query_ranks(std::optional<pid_t> process,
                                            std::chrono::milliseconds patience) {
  auto read = read_file("/proc/net/unix", kMostSockets);
  if (!read.ok()) {
    Error error = std::move(read).error();
    error.hint = "weft finds ranks in the kernel's list of sockets: mount /proc";
    return error;
  }
  const std::string sockets = *std::move(read);
  std::vector<std::string> names;
  for (const std::string& name : names_in(sockets)) {
    const pid_t owner_of = process_of(name);
    // Ranks of other users would not answer; a user who names such a process is told so.
    if (process ? owner_of == *process : !is_other_users(owner_of)) names.push_back(name);
  }
  std::vector<Question> questions(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    Result<tcp::Socket> socket = connect_unix(names[i]);
    // Any user can bind such a name: accept answers only from this user or root.
    if (socket.ok() && (::geteuid() == 0 || is_same_user(*socket))) questions[i].socket = std::move(*socket);
    questions[i].done = !questions[i].socket;
  }
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    std::vector<pollfd> open;
    for (const Question& question : questions) {
      if (!question.done) open.push_back({question.socket.descriptor(), POLLIN, 0});
    }
    const int left = tcp::milliseconds_until(deadline);
    if (open.empty() || left == 0) break;
    ::poll(open.data(), open.size(), left);
    for (Question& question : questions) {
      if (!question.done) read_answer(question);
    }
  }
  std::vector<RankReport> patients;
  for (std::size_t i = 0; i < names.size(); ++i) {
    RankReport patient = diagnose(names[i], std::move(questions[i]));
    if (patient.state != kGone) patients.push_back(std::move(patient));
  }
  std::ranges::sort(patients, {},
                    [](const RankReport& one) { return std::tuple(one.ranks, one.rank, one.process); });
  return patients;
}

tcp::Socket open_doctor_socket() {
  // Part of the name is random: any user can bind names, and a process may be in several jobs.
  Result<tcp::Socket> socket = listen_unix(fmt::format("{}{}.{}", kName, ::getpid(), hex(random_bytes(8))));
  return socket.ok() ? std::move(*socket) : tcp::Socket();
}

Result<tcp::Socket> accept_doctor_query(const tcp::Socket& listener) {
  WEFT_TRY(asker, tcp::accept(listener));
  return asker && is_same_user(asker) ? std::move(asker) : tcp::Socket();
}

void answer_doctor_query(tcp::Socket asker, std::string_view text) {
  // Text beyond the kernel's buffer is dropped: the watcher never blocks.
  tcp::set_buffers(asker, 1 << 20);
  [[maybe_unused]] const ssize_t sent =
      ::send(asker.descriptor(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace weft::transport
