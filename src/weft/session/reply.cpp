#include "weft/session/reply.h"

#include <memory>
#include <string_view>

#include "weft/language/complaint.h"

namespace weft::session {

Error in_text(const std::string& text, Error error) {
  if (error.text == nullptr) error.text = std::make_shared<const std::string>(text);
  return error;
}

Reply complain(const Error& error) {
  Reply reply;
  reply.exit_code = error.fault == Fault::world ? ExitCode::world_error : ExitCode::user_error;
  reply.complaint = language::complain(error, error.text != nullptr ? std::string_view(*error.text) : "");
  return reply;
}

Reply to_reply(const Result<std::string>& answer) {
  return answer.ok() ? Reply{ExitCode::ok, *answer, {}} : complain(answer.error());
}

Reply with_warnings(Reply reply, Warnings& warnings) {
  reply.complaint.insert(0, warnings.take());
  return reply;
}

}  // namespace weft::session
