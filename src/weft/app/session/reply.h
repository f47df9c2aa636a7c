// weft/app/session/reply.h -- turns a result into the reply to a command.
#pragma once
#include <string>
#include <string_view>

#include "weft/app/session/session.h"
#include "weft/base/result.h"
#include "weft/planner/statement/warnings.h"

namespace weft::session {

// The error located at `span`, unless it already has a location.
Error placed(Error error, Span span);
// The error with the text that its span refers to, unless it already has one.
Error in_text(const std::string& text, Error error);

// The error as a reply, with its location if it has one.
Reply complain(const Error& error);
// {"error": {"message", "line", "column", "hint"}} on one line. `line` and `column` are null if the
// error has no location in `text` or in its own text. `file` names the source of the text; included
// if not empty.
std::string error_json(const Error& error, std::string_view text, std::string_view file = {});

Reply to_reply(const Result<std::string>& answer);
Reply with_warnings(Reply reply, planner::Warnings& warnings);

}  // namespace weft::session
