// weft/rules/rule/library.h -- loads the built-in rules, and rules from files and folders.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "weft/base/embedded.h"
#include "weft/base/result.h"
#include "weft/rules/rule/rule.h"

namespace weft::rule {

// The files of rules/, which are embedded in the program.
const std::vector<Rule>& shipped_rules();

// The rules of a file, or of all *.rules in a folder sorted by name. Fails at the first mistake,
// with its location; also if no instance of a rule can be found, or two rules have the same name.
Result<std::vector<Rule>> load_rules(const std::string& path);

// The same for files in memory.
Result<std::vector<Rule>> load_rules(std::span<const EmbeddedFile> files);

// Fails if two rules have the same name, and gives both locations.
Status check_names(std::span<const Rule> rules);

}  // namespace weft::rule
