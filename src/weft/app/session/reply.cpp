#include "weft/app/session/reply.h"

#include <memory>
#include <string_view>

#include <nlohmann/json.hpp>

#include "weft/language/complaint.h"

namespace weft::session {

Error placed(Error error, Span span) {
  if (!error.span.known()) error.span = span;
  return error;
}

Error in_text(const std::string& text, Error error) {
  if (error.text == nullptr) error.text = std::make_shared<const std::string>(text);
  return error;
}

Reply complain(const Error& error) {
  Reply reply;
  reply.exit_code = error.fault == Fault::world ? ExitCode::environment_error : ExitCode::user_error;
  reply.complaint = language::complain(error, error.text != nullptr ? std::string_view(*error.text) : "");
  reply.error = error;
  return reply;
}

std::string error_json(const Error& error, std::string_view text, std::string_view file) {
  nlohmann::ordered_json told = {
      {"message", error.message}, {"line", nullptr}, {"column", nullptr}, {"hint", error.hint}};
  if (error.span.known()) {
    const auto [line, column] =
        language::position(error.text != nullptr ? std::string_view(*error.text) : text, error.span.offset);
    told["line"] = line;
    told["column"] = column;
  }
  if (!file.empty()) told["file"] = file;
  return nlohmann::ordered_json{{"error", std::move(told)}}.dump(
             -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

Reply to_reply(const Result<std::string>& answer) {
  return answer.ok() ? Reply{ExitCode::ok, *answer, {}} : complain(answer.error());
}

Reply with_warnings(Reply reply, planner::Warnings& warnings) {
  reply.complaint.insert(0, warnings.take());
  return reply;
}

}  // namespace weft::session
