// weft/app/command/tokenize.h -- `weft tokenize`: writes the tokens of texts for TRAIN.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "weft/app/session/session.h"

namespace weft::command {

struct Tokenize {
  std::vector<std::string> files;  // a document each, or .jsonl with one per line
  std::string tokenizer;
  std::string to;            // writes to.bin and to.idx
  std::string end;           // token after each document; empty: none
  std::string key = "text";  // of the text in lines of .jsonl
  session::Format format = session::Format::text;
  std::function<bool()> interrupted = {};
};
session::Reply run(const Tokenize& request);

}  // namespace weft::command
