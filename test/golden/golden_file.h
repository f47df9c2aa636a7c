// golden_file.h -- reads and writes .test files, which hold inputs and expected outputs.
//
//   # Why this case is here, in a sentence.
//   parse format=json
//   SHOW MODELS
//   ----
//   SHOW MODELS;
//
// A case is a command line (a command and its flags), input up to `----`, and the expected output
// up to a blank line. Output that contains blank lines is enclosed in doubled delimiters:
//
//   ----
//   ----
//   one
//
//   two
//   ----
//   ----
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft::golden {

struct Case {
  std::size_t line = 0;  // of the command, from 1
  std::string command;
  std::map<std::string, std::string, std::less<>> flags;  // a flag without = has an empty value
  std::string input;                                      // its lines with their newlines
  std::string expected;                                   // likewise

  std::string flag(std::string_view name, std::string_view otherwise = {}) const;
  std::int64_t number(std::string_view name, std::int64_t otherwise) const;
};

struct GoldenFile {
  // The rest of the file: the text before each case's expected output, then the comments after the
  // last case. So between.size() == cases.size() + 1.
  std::vector<std::string> between;
  std::vector<Case> cases;
};

// Reports a case without `----` or with an invalid form, with its line.
Result<GoldenFile> read_golden(std::string_view text);

// The file with `outputs[i]` as the expected output of the i-th case.
std::string write_golden(const GoldenFile& file, const std::vector<std::string>& outputs);

}  // namespace weft::golden
