// weft/communication/transport/doctor.h -- asks the ranks that run on this machine what they are doing.
//
//   weft doctor ──▶ @weft-doctor-4711.5f... (a socket of every process in a job)
//               ◀── rank 2 of 4, process 4711
//                   waits for rank 3 in an exchange for 4.2 s ...
//
// To connect is to ask; the answer is text until the end. Only root and the process's own user are answered.
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

// Between what is for people and what is for programs.
inline constexpr char kBeforeFigures = '\f';

struct Patient {
  pid_t process = 0;
  std::int32_t rank = -1, ranks = 0;  // as it says; -1: it did not
  std::string answer = {};            // empty: it did not answer in time
  std::string state = {};             // where it did not: "stopped (T)", "sleeping (S)", as /proc has it
  std::string figures = {};           // for programs: what an answer has after kBeforeFigures
};

// All processes of jobs of this user, root's of everyone, in this network namespace, or only `process`, by rank, each asked for at most
// `patience` and all at once. Fails when the kernel's list of sockets cannot be read.
Result<std::vector<Patient>> ask_ranks(std::optional<pid_t> process, std::chrono::milliseconds patience);

// The other side: a socket to be asked at; empty where there can be none. Then, when it is readable, whoever
// asks: an empty Socket for nobody, or nobody who may. Fails when the listener is of no use any more.
tcp::Socket open_for_questions();
Result<tcp::Socket> next_question(const tcp::Socket& listener);
void answer_question(tcp::Socket asker, std::string_view text);

}  // namespace weft::transport
