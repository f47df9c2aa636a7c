// Any text is a model or a user error. A model's text is WeftQL, and its weights add up to its
// parameter count.

#include "promise.h"
#include "weft/language/parser.h"
#include "weft/translate/imports/hugging_face.h"

using weft::fuzz::promise;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const bool plain = size % 2 == 0;
  const auto model =
      weft::imports::import_hugging_face(text, {.name = {}, .otherwise = {}, .plain_rotary = plain});
  if (!model.ok()) {
    promise(model.error().fault == weft::Fault::user, "a bad file is a user error");
    promise(!model.error().message.empty(), "an error has a message");
    return 0;
  }
  promise(model->parameters > 0, "a model has parameters", text);
  promise(weft::language::parse(model->text).ok(), "an imported model is WeftQL", model->text);
  std::int64_t elements = 0;
  for (const weft::imports::WeightSource& weight : model->weights) {
    if (weight.state) continue;
    std::int64_t count = 1;
    for (const std::int64_t dim : weight.shape) count *= dim;
    elements += count;
  }
  promise(elements == model->parameters, "every parameter has its weights", text);
  return 0;
}
