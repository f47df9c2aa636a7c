// The command that imports a Hugging Face configuration.

#include <fmt/format.h>

#include "commands.h"
#include "weft/translate/imports/hugging_face.h"

namespace weft::golden {

std::string import_command(const Case& test) {
  const auto model = imports::import_hugging_face(
      test.input,
      {.name = test.flag("name"), .otherwise = {}, .plain_rotary = test.flags.contains("plain-rotary")});
  if (model.ok()) return fmt::format("{}-- {} parameters\n", model->text, model->parameters);
  return fmt::format("error: {}\n  {}\n", model.error().message, model.error().hint);
}

}  // namespace weft::golden
