// weft/base/embedded.h -- a text file that travels inside the program.
//
// cmake/Embed.cmake turns files into a function that returns them. Whoever wants the files
// declares that function beside the code that reads them:
//
//   weft_embed(weft_language embedded_models models/gpt2.weft models/vgg16.weft)   # CMake
//
//   namespace weft { std::span<const EmbeddedFile> embedded_models(); }           // C++
#pragma once
#include <span>
#include <string_view>

namespace weft {

struct EmbeddedFile {
  std::string_view path;  // from the repository's root: "models/gpt2.weft"
  std::string_view text;
};

}  // namespace weft
