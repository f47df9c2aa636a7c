// weft/app/command/import.h -- `weft import`: models and weights of other programs.
#pragma once
#include <string>
#include <vector>

#include "weft/app/session/session.h"

namespace weft::command {

struct Import {
  std::string file;                  // a Hugging Face config.json or an ONNX model
  std::string name;                  // of the model; empty: from the file or its folder
  std::string to;                    // file for the text; empty: print it
  std::vector<std::string> weights;  // .safetensors; converted for LOAD and written beside `to`
  bool plain_rotary = false;         // see imports/hugging_face.h
  session::Format format = session::Format::text;
};
session::Reply run(const Import& request);

}  // namespace weft::command
