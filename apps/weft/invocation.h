// invocation.h -- `weft OPTION... COMMAND ARGUMENT...`: extracts the command and its arguments.
//
//   weft --format json collective list            as collective list --format json
//   weft -i my.weft plan price p --cluster mine   mine is what the script creates
//   weft -i my.weft doctor                        an error: doctor names nothing that a script creates
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft {

struct Invocation {
  std::string_view command;          // empty: statements, a script or the prompt
  std::vector<char*> arguments;      // of the command, its name first
  std::vector<std::string> scripts;  // -i
  bool statements = false;           // -c
};

// All arguments after `launch` belong to it or to its program.
Invocation read_invocation(int argc, char** argv);

// Makes the objects of the -i scripts known to the command. Fails if -i or -c cannot be combined
// with it.
Status read_scripts(const Invocation& given);

// The commands that parse their own arguments.
std::vector<std::string_view> command_names();

}  // namespace weft
