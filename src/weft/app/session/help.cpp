// `weft help`: the pages of docs/help, embedded in the program.
#include <fmt/format.h>

#include "weft/app/session/reply.h"
#include "weft/app/session/session.h"
#include "weft/base/embedded.h"
#include "weft/base/letters.h"
#include "weft/base/nearest.h"

namespace weft {
std::span<const EmbeddedFile> embedded_help();
}  // namespace weft

namespace weft::session {
namespace {

// docs/help/explain.txt -> explain
std::string_view topic_of(const EmbeddedFile& file) {
  std::string_view name = file.path.substr(file.path.rfind('/') + 1);
  return name.substr(0, name.rfind('.'));
}

}  // namespace

std::vector<std::string_view> help_topics() {
  std::vector<std::string_view> topics;
  for (const EmbeddedFile& file : embedded_help()) topics.push_back(topic_of(file));
  return topics;
}

Reply help(std::string_view topic, std::size_t width) {
  if (topic.empty()) topic = "weft";
  const std::string wanted = lower(topic);
  for (const EmbeddedFile& file : embedded_help()) {
    if (topic_of(file) != wanted) continue;
    Reply reply;
    reply.output = explain::wrap_page(file.text, width);
    return reply;
  }
  const std::vector<std::string_view> topics = help_topics();
  const std::string hint = did_you_mean(wanted, topics);
  return complain(user_error(fmt::format("no help on '{}'", topic),
                             hint.empty() ? fmt::format("topics are {}", fmt::join(topics, ", ")) : hint));
}

}  // namespace weft::session
