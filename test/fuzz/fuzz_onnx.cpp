// Any bytes are a model or a user error. A model's text is WeftQL.

#include "promise.h"
#include "weft/language/parser.h"
#include "weft/translate/imports/onnx.h"

using weft::fuzz::promise;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto model = weft::imports::import_onnx(bytes, "m");
  if (!model.ok()) {
    promise(model.error().fault == weft::Fault::user, "a bad file is a user error");
    return 0;
  }
  promise(weft::language::parse(model->model.text).ok(), "an imported model is WeftQL", model->model.text);
  return 0;
}
