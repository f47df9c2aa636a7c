// Runs statements in a session and returns its answers.
#pragma once
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "weft/app/session/session.h"

namespace weft::session {

// The last JSON object in the answer to the statements.
inline nlohmann::json answer(Session& session, const std::string& text) {
  session.format = Format::json;
  const Reply reply = session.execute(text);
  EXPECT_EQ(reply.exit_code, ExitCode::ok) << text << "\n" << reply.complaint;
  const std::size_t end = reply.output.find_last_not_of('\n');
  if (end == std::string::npos) return {};
  const std::size_t begin = reply.output.rfind('\n', end);
  return nlohmann::json::parse(reply.output.substr(begin == std::string::npos ? 0 : begin + 1));
}

// The error message.
inline std::string complaint(Session& session, const std::string& text) {
  const Reply reply = session.execute(text);
  EXPECT_NE(reply.exit_code, ExitCode::ok) << text;
  return reply.complaint;
}

}  // namespace weft::session
