// weft/app/command/import.h -- `weft import`: a model of another program as WeftQL, counted, and its weights.
#pragma once
#include <string>
#include <vector>

#include "weft/app/session/session.h"

namespace weft::command {

struct Import {
  std::string file;                  // a config.json of Hugging Face
  std::string name;                  // of the model; empty: as the file, or its folder, has it
  std::string to;                    // a file for the text; empty: it is the answer
  std::vector<std::string> weights;  // .safetensors, beside `to` then as LOAD takes them
  bool plain_rotary = false;         // see imports/hugging_face.h
  session::Format format = session::Format::text;
};
session::Reply run(const Import& request);

}  // namespace weft::command
