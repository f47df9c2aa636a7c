#include "weft/communication/transport/bootstrap_messages.h"

#include <nlohmann/json.hpp>

namespace weft::transport {
namespace {

using Json = nlohmann::ordered_json;

// Host names may contain any bytes; invalid UTF-8 is replaced.
std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json to_json(const BootstrapMember& attendee) {
  return {{"rank", attendee.rank},        {"ranks", attendee.ranks},
          {"host", attendee.member.host}, {"address", attendee.member.address},
          {"door", attendee.door},        {"process", attendee.member.process}};
}

BootstrapMember attendee_from(const Json& json) {
  BootstrapMember out;
  json.at("rank").get_to(out.rank);
  json.at("ranks").get_to(out.ranks);
  json.at("host").get_to(out.member.host);
  json.at("address").get_to(out.member.address);
  json.at("door").get_to(out.door);
  json.at("process").get_to(out.member.process);
  return out;
}

template <class Read>
auto read(std::string_view text, Read take) -> std::optional<decltype(take(Json()))> {
  try {
    return take(Json::parse(text));
  } catch (const Json::exception&) {
    return {};
  }
}

}  // namespace

std::string print(const BootstrapMember& attendee) { return dump(to_json(attendee)); }

std::string print(const Table& table) {
  Json members = Json::array();
  for (const BootstrapMember& attendee : table.attendees) members.push_back(to_json(attendee));
  return dump({{"session", table.session}, {"members", members}});
}

std::string print(const Error& error) { return dump({{"message", error.message}, {"hint", error.hint}}); }

std::optional<BootstrapMember> parse_bootstrap_member(std::string_view text) {
  return read(text, attendee_from);
}

std::optional<Table> parse_table(std::string_view text) {
  return read(text, [](const Json& json) {
    Table table{json.at("session").get<std::string>(), {}};
    for (const Json& each : json.at("members")) table.attendees.push_back(attendee_from(each));
    return table;
  });
}

Error parse_failure(std::string_view text) {
  const auto error = read(text, [](const Json& json) {
    return environment_error(json.at("message").get<std::string>(), json.at("hint").get<std::string>());
  });
  return error ? *error : environment_error("the ranks did not all connect");
}

}  // namespace weft::transport
