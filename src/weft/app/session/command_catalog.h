// weft/app/session/command_catalog.h -- what the arguments of a command may name.
//
//   weft -i my.weft collective choose all_reduce --on mine     ships, or is created by my.weft
//
// Scripts before a command are read once, by the program, before the command runs.
#pragma once
#include <string>

#include "weft/base/result.h"
#include "weft/language/catalog.h"

namespace weft::session {

// What the script creates is there for the command. Fails where it has statements that do not hold for commands.
Status read_before_command(const std::string& script);

// What ships, and what the scripts before the command created.
void load_known(language::Catalog& catalog);

enum class OtherStatements { skipped, refused };

struct Created {
  std::string model, cluster;  // the last of each; may be empty
};

// Carries out CREATE and DROP of a script. Errors carry its text.
Result<Created> create_all(language::Catalog& catalog, const std::string& script,
                           OtherStatements others = OtherStatements::skipped);

}  // namespace weft::session
