// weft/base/embedded.h -- a text file embedded in the program.
//
// cmake/Embed.cmake generates a function that returns the files. A user of the files declares this
// function beside the code that reads them:
//
//   weft_embed(weft_language embedded_models models/gpt2.weft models/vgg16.weft)   # CMake
//
//   namespace weft { std::span<const EmbeddedFile> embedded_models(); }           // C++
#pragma once
#include <span>
#include <string_view>

namespace weft {

struct EmbeddedFile {
  std::string_view path;  // relative to the repository root: "models/gpt2.weft"
  std::string_view text;
};

}  // namespace weft
