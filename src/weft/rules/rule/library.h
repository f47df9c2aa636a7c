// weft/rules/rule/library.h -- the rules that come with Weft, and those of files and folders.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "weft/base/embedded.h"
#include "weft/base/result.h"
#include "weft/rules/rule/rule.h"

namespace weft::rule {

// The files of rules/, which travel inside the program.
const std::vector<Rule>& shipped_rules();

// The rules of a file, or of all *.rules in a folder in order of their names. Fails at the first mistake,
// with its place; also when no instance of a rule can be found, or two rules have one name.
Result<std::vector<Rule>> load_rules(const std::string& path);

// The same of texts that are at hand.
Result<std::vector<Rule>> load_rules(std::span<const EmbeddedFile> files);

// Fails when two rules have one name, naming both places.
Status check_names(std::span<const Rule> rules);

}  // namespace weft::rule
