#include "subcommands.h"

#include <string>

#include <fmt/format.h>

#include "output.h"
#include "weft/base/nearest.h"

namespace weft {

void add_format(CLI::App* app, session::Format& format) {
  app->add_option_function<std::string>("--format",
                                        [&format](const std::string& name) {
                                          format =
                                              name == "json" ? session::Format::json : session::Format::text;
                                        })
      ->check(CLI::IsMember({"text", "json"}));
}

Result<session::Reply> run_subcommand(CLI::App& app, std::vector<Subcommand> commands, std::string_view name,
                                      int argc, char** argv) {
  bool asked = false;
  app.set_help_flag();
  app.add_flag("-h,--help", asked);
  app.allow_extras();
  for (const Subcommand& command : commands) {
    command.app->set_help_flag();
    command.app->add_flag("-h,--help", asked);
  }
  const auto page = [&] { return session::help(name, output_width()); };
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (asked) return page();
    return user_error(error.what(), fmt::format("run weft {} --help", name));
  }
  if (asked || argc == 1) return page();
  std::vector<std::string_view> words;
  for (const Subcommand& command : commands) {
    if (command.app->parsed()) return command.run();
    words.push_back(command.app->get_name());
  }
  const std::string word = app.remaining().empty() ? "nothing" : app.remaining().front();
  const std::string hint = did_you_mean(word, words);
  return user_error(fmt::format("weft {} has no subcommand {}", name, word),
                    hint.empty() ? fmt::format("run weft {} --help", name) : hint);
}

}  // namespace weft
