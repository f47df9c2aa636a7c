// weft/app/session/command_catalog.h -- the names that a command's arguments may use.
//
//   weft -i my.weft collective choose all_reduce --on mine     shipped, or created by my.weft
//
// The program reads scripts given before a command once, before the command runs.
#pragma once
#include <string>

#include "weft/base/result.h"
#include "weft/language/catalog.h"

namespace weft::session {

// Makes the script's objects available to the command. Fails on statements other than CREATE and
// DROP.
Status read_before_command(const std::string& script);

// Loads shipped objects and those created by scripts before the command.
void load_known(language::Catalog& catalog);

enum class OtherStatements { skipped, refused };

struct Created {
  std::string model, cluster;  // the last one created; may be empty
};

// Executes a script's CREATE and DROP statements. Errors include the script's text.
Result<Created> create_all(language::Catalog& catalog, const std::string& script,
                           OtherStatements others = OtherStatements::skipped);

}  // namespace weft::session
