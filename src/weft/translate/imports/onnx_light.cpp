#include "weft/translate/imports/onnx_light.h"

#include "weft/formats/protobuf_wire.h"

namespace weft::imports {
namespace {

using formats::WireField;
using formats::WireReader;
using formats::WireType;
using formats::WireWriter;

// Field numbers of onnx.proto.
constexpr std::uint32_t kGraphOfModel = 7, kInitializerOfGraph = 5, kRawDataOfTensor = 9;

// Copies the fields of a message. `change` may write a field differently and then returns true.
template <class Change>
bool copy_fields(std::string_view message, std::string& to, const Change& change) {
  WireReader reader(message);
  while (!reader.at_end()) {
    const std::size_t begin = reader.offset();
    WireField field;
    if (!reader.read_field(field)) return false;
    const std::optional<bool> changed =
        field.type == WireType::bytes ? change(field) : std::optional<bool>(false);
    if (!changed) return false;
    if (!*changed) to.append(message.substr(begin, reader.offset() - begin));
  }
  return true;
}

void append_field(std::string& to, std::uint32_t number, std::string_view bytes) {
  WireWriter writer;
  writer.field(number, bytes);
  to += writer.bytes();
}

}  // namespace

std::optional<LightOnnx> without_large_tensors(std::string_view bytes, std::size_t large) {
  LightOnnx made;
  const auto tensor_field = [&](const WireField& field) -> std::optional<bool> {
    if (field.number != kRawDataOfTensor || field.bytes.size() < large) return false;
    made.data.back() = field.bytes;
    return true;
  };
  std::string graph;
  const auto graph_field = [&](const WireField& field) -> std::optional<bool> {
    if (field.number != kInitializerOfGraph) return false;
    made.data.emplace_back();
    std::string tensor;
    if (!copy_fields(field.bytes, tensor, tensor_field)) return std::nullopt;
    append_field(graph, kInitializerOfGraph, tensor);
    return true;
  };
  const auto model_field = [&](const WireField& field) -> std::optional<bool> {
    if (field.number != kGraphOfModel) return false;
    graph.clear();
    if (!copy_fields(field.bytes, graph, graph_field)) return std::nullopt;
    append_field(made.bytes, kGraphOfModel, graph);
    return true;
  };
  if (!copy_fields(bytes, made.bytes, model_field)) return std::nullopt;
  return made;
}

}  // namespace weft::imports
