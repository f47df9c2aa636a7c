#include "weft/translate/imports/onnx.h"

#include <cstring>

#include <fmt/format.h>

#include "weft/formats/value.h"
#include "weft/translate/imports/hugging_face.h"
#include "weft/translate/imports/onnx_graph.h"
#include "weft/translate/imports/onnx_model.h"
#include "weft/translate/imports/onnx_norms.h"

namespace weft::imports {
namespace {

void append_number(std::string& bytes, float number) {
  char raw[sizeof number];
  std::memcpy(raw, &number, sizeof raw);
  bytes.append(raw, sizeof raw);
}

}  // namespace

Result<ImportedOnnx> import_onnx(std::string_view bytes, std::string_view given) {
  WEFT_TRY(graph, read_onnx(bytes));
  join_norms(graph);
  WEFT_TRY(model, resolve_onnx(graph));
  const std::string own = name_from(graph.name);
  const std::string name = !given.empty() ? std::string(given) : own.empty() ? "model" : own;
  WEFT_TRY(text, print_onnx(model, name));
  ImportedOnnx made;
  made.model.name = name;
  made.model.architecture = "onnx";
  made.model.parameters = text.parameters;
  made.model.notes = model.notes;
  const bool has_loss =
      model.loss || (model.file.outputs.size() == 1 && model.file.shape(model.file.outputs[0]).empty());
  if (!has_loss) made.model.notes.push_back("the file has no loss: INFER runs the model, TRAIN needs one");
  made.model.text = fmt::format("-- From an ONNX file, opset {}.\n", graph.opset);
  for (const std::string& note : made.model.notes) made.model.text += fmt::format("-- {}\n", note);
  made.model.text += "\n" + text.text;

  // The tensors that remain in the text, with their bytes in the file.
  std::map<std::string, const OnnxTensor*, std::less<>> tensors;
  for (const OnnxTensor& tensor : graph.tensors) tensors.emplace(tensor.name, &tensor);
  for (const OnnxNode& node : graph.nodes)
    if (const auto value = node.attributes.find("value");
        node.operation == "Constant" && value != node.attributes.end())
      tensors.emplace(node.outputs.front(), &value->second.tensor);
  auto storage = std::make_shared<std::string>();
  struct Place {
    const OnnxTensor* tensor;
    std::string name;
    std::size_t begin;
  };
  std::vector<Place> places;
  for (const auto& [value, parameter] : text.names) {
    const auto found = tensors.find(model.file.values[value].id);
    if (found == tensors.end()) continue;
    const bool is_condition = found->second->dtype == plan::DType::boolean;
    if (is_condition && !found->second->location.empty())
      return user_error(fmt::format("{}: expected the data of bool in the file itself, found them in '{}'",
                                    formats::shown(found->first), formats::shown(found->second->location)));
    if (!found->second->location.empty()) {
      const OnnxTensor& tensor = *found->second;
      made.external.push_back(
          {parameter, tensor.dtype, tensor.shape, tensor.location, tensor.offset, tensor.size});
      continue;
    }
    places.push_back({found->second, parameter, storage->size()});
    if (is_condition)
      for (const char holds : found->second->data()) append_number(*storage, holds != 0 ? 1.0f : 0.0f);
    else
      storage->append(found->second->bytes);
  }
  for (const Place& place : places) {
    const OnnxTensor& tensor = *place.tensor;
    if (tensor.dtype == plan::DType::boolean) {
      const std::size_t size = tensor.data().size() * sizeof(float);
      made.weights.tensors.push_back({place.name, plan::DType::f32, tensor.shape,
                                      std::as_bytes(std::span(*storage).subspan(place.begin, size))});
      continue;
    }
    made.weights.tensors.push_back(
        {place.name, tensor.dtype, tensor.shape,
         std::as_bytes(tensor.large.empty() ? std::span(*storage).subspan(place.begin, tensor.bytes.size())
                                            : std::span(tensor.large))});
  }
  made.weights.metadata["model"] = name;
  made.weights.storage = std::move(storage);
  return made;
}

}  // namespace weft::imports
