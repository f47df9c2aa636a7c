// weft/app/session/reply.h -- a result as the answer to a command.
#pragma once
#include <string>
#include <string_view>

#include "weft/app/session/session.h"
#include "weft/base/result.h"
#include "weft/planner/statement/warnings.h"

namespace weft::session {

// The error with this place, unless it has one.
Error placed(Error error, Span span);
// The error with the text that its place lies in, unless it has one.
Error in_text(const std::string& text, Error error);

// The error as a reply, its place shown where it has one.
Reply complain(const Error& error);
// {"error": {"message", "line", "column", "hint"}} on one line; line and column are null where the error has no
// place in `text`, or in its own. `file`: whose text it is, said where it is known.
std::string error_json(const Error& error, std::string_view text, std::string_view file = {});

Reply to_reply(const Result<std::string>& answer);
Reply with_warnings(Reply reply, planner::Warnings& warnings);

}  // namespace weft::session
