// weft/communication/transport/bootstrap_messages.h -- bootstrap messages between ranks, as text.
//
//   hello   {"rank": 2, "ranks": 4, "host": "...", "address": "10.0.0.3:41234", "door": "weft-5f...",
//            "process": 77}
//   table   {"session": "...", "members": [hello, ...]}
//   failed  {"message": "...", "hint": "..."}
//
// Peers are authenticated, but their messages are still validated: a field of the wrong type is an
// error, not an exception.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/transport/job.h"

namespace weft::transport {

struct BootstrapMember {
  std::int32_t rank = 0, ranks = 0;
  Member member;
  std::string door;  // Unix socket for links within its host
};

struct Table {
  std::string session;  // random: identifies this run of the job
  std::vector<BootstrapMember> attendees;
};

std::string print(const BootstrapMember& attendee);
std::string print(const Table& table);
std::string print(const Error& error);

std::optional<BootstrapMember> parse_bootstrap_member(std::string_view text);
std::optional<Table> parse_table(std::string_view text);
Error parse_failure(std::string_view text);

}  // namespace weft::transport
