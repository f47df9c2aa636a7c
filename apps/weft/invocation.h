// invocation.h -- `weft OPTION... COMMAND ARGUMENT...`: what belongs to the command.
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

// Of launch every argument behind its name is its own or its program's.
Invocation read_invocation(int argc, char** argv);

// Makes what -i names known to the command; says where -i and -c do not go with it.
Status read_scripts(const Invocation& given);

// Commands with arguments of their own.
std::vector<std::string_view> command_names();

}  // namespace weft
