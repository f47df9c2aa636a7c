// weft/communication/transport/doctor.h -- queries the state of the ranks on this machine.
//
//   weft doctor ──▶ @weft-doctor-4711.5f... (a socket of every process in a job)
//               ◀── rank 2 of 4, process 4711
//                   waits for rank 3 in an exchange for 4.2 s ...
//
// Connecting is the query; the answer is text up to the end of the stream. Only root and the user
// who owns the process get an answer.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/transport/tcp/socket.h"

namespace weft::transport {

// Separates human-readable text from machine-readable figures.
inline constexpr char kFiguresSeparator = '\f';

struct RankReport {
  pid_t process = 0;
  std::int32_t rank = -1, ranks = 0;  // from its answer; -1: none
  std::string answer = {};            // empty: no answer in time
  std::string state = {};             // without an answer: "stopped (T)", "sleeping (S)", from /proc
  std::string figures = {};           // machine-readable part, after kFiguresSeparator
};

// Queries all job processes in this network namespace, or only `process`, concurrently, waiting at
// most `patience`. Covers this user's processes, or all users' for root. Sorted by rank. Fails if
// the kernel's list of sockets cannot be read.
Result<std::vector<RankReport>> query_ranks(std::optional<pid_t> process, std::chrono::milliseconds patience);

// The answering side. open_doctor_socket(): a listening socket; empty if there can be none.
// accept_doctor_query(): once it is readable, the connection of a querying process; empty if there is
// none, or if it has no permission. Fails if the listener is unusable.
tcp::Socket open_doctor_socket();
Result<tcp::Socket> accept_doctor_query(const tcp::Socket& listener);
void answer_doctor_query(tcp::Socket asker, std::string_view text);

}  // namespace weft::transport
