#include "weft/translate/imports/onnx_graph.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "weft/base/number.h"
#include "weft/formats/value.h"
#include "weft/translate/imports/onnx_light.h"

#ifdef WEFT_HAS_ONNX
#include <google/protobuf/io/coded_stream.h>
#include <onnx/onnx_pb.h>
#endif

namespace weft::imports {

double as_written(float value) {
  if (!std::isfinite(value)) return static_cast<double>(value);
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  double read = 0;
  std::from_chars(digits, end, read);
  return read;
}

#ifdef WEFT_HAS_ONNX

namespace {

constexpr std::int64_t kOldestOpset = 13, kNewestOpset = 20;
constexpr int kMostOnnxDims = 8;
constexpr int kMostOnnxNodes = 30'000;
constexpr std::int64_t kMostOnnxDim = 2147483647;

Result<plan::DType> dtype_of(int type, std::string_view name) {
  switch (type) {
    case onnx::TensorProto::FLOAT: return plan::DType::f32;
    case onnx::TensorProto::DOUBLE: return plan::DType::f64;
    case onnx::TensorProto::FLOAT16: return plan::DType::f16;
    case onnx::TensorProto::BFLOAT16: return plan::DType::bf16;
    case onnx::TensorProto::INT32: return plan::DType::i32;
    case onnx::TensorProto::INT64: return plan::DType::i64;
    case onnx::TensorProto::BOOL: return plan::DType::boolean;
    default: break;
  }
  return user_error(
      fmt::format("{}: expected a type of float, double, float16, bfloat16, int32, int64 or bool, found {}",
                  formats::shown(name), type));
}

template <class Numbers, class To>
std::string bytes_of(const Numbers& numbers, To) {
  std::string bytes;
  for (const auto number : numbers) {
    const To value = static_cast<To>(number);
    char raw[sizeof(To)];
    std::memcpy(raw, &value, sizeof raw);
    bytes.append(raw, sizeof raw);
  }
  return bytes;
}

// An untrusted file must not name other files of this machine.
bool is_local_path(const std::string& location) {
  const std::filesystem::path path(location);
  return path.is_relative() && std::none_of(path.begin(), path.end(),
                                            [](const std::filesystem::path& part) { return part == ".."; });
}

// `large`: the tensor's data, if they were left out of the message.
Result<OnnxTensor> tensor_of(const onnx::TensorProto& proto, std::string_view large = {}) {
  OnnxTensor tensor;
  tensor.name = proto.name();
  WEFT_TRY(dtype, dtype_of(proto.data_type(), proto.name()));
  tensor.dtype = dtype;
  std::int64_t elements = 1;
  if (proto.dims_size() > kMostOnnxDims)
    return user_error(fmt::format("{}: expected at most {} dims, found {}", formats::shown(proto.name()),
                                  kMostOnnxDims, proto.dims_size()));
  for (const std::int64_t dim : proto.dims()) {
    if (dim < 0 || dim > kMostOnnxDim || __builtin_mul_overflow(elements, dim, &elements))
      return user_error(fmt::format("{}: expected dims from 0 to {}, found {}", formats::shown(proto.name()),
                                    kMostOnnxDim, dim));
    tensor.shape.push_back(dim);
  }
  std::int64_t expected = 0;
  if (__builtin_mul_overflow(elements, static_cast<std::int64_t>(plan::size_in_bytes(dtype)), &expected))
    return user_error(fmt::format("{}: the tensor is too large", formats::shown(proto.name())));
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) {
    tensor.size = expected;
    for (const auto& entry : proto.external_data()) {
      if (entry.key() == "location") tensor.location = entry.value();
      if (entry.key() == "offset") {
        const auto offset = read_number<std::int64_t>(entry.value(), 0);
        if (!offset)
          return user_error(fmt::format("{}: expected the offset of its data, a whole number, found '{}'",
                                        formats::shown(proto.name()), formats::shown(entry.value())));
        tensor.offset = *offset;
      }
    }
    if (tensor.location.empty() || tensor.offset < 0)
      return user_error(
          fmt::format("{}: expected the location of its data, found none", formats::shown(proto.name())));
    if (!is_local_path(tensor.location))
      return user_error(fmt::format("{}: expected data in a file beside this one, found '{}'",
                                    formats::shown(proto.name()), formats::shown(tensor.location)));
    return tensor;
  }
  if (!large.empty())
    tensor.large = large;
  else if (!proto.raw_data().empty())
    tensor.bytes = proto.raw_data();
  else if (dtype == plan::DType::f32)
    tensor.bytes = bytes_of(proto.float_data(), float());
  else if (dtype == plan::DType::f64)
    tensor.bytes = bytes_of(proto.double_data(), double());
  else if (dtype == plan::DType::i64)
    tensor.bytes = bytes_of(proto.int64_data(), std::int64_t());
  else if (dtype == plan::DType::i32)
    tensor.bytes = bytes_of(proto.int32_data(), std::int32_t());
  else if (dtype == plan::DType::boolean)
    tensor.bytes = bytes_of(proto.int32_data(), char());
  else
    tensor.bytes = bytes_of(proto.int32_data(), std::uint16_t());
  if (static_cast<std::int64_t>(tensor.data().size()) != expected)
    return user_error(fmt::format("{}: expected {} bytes of data, found {}", formats::shown(proto.name()),
                                  expected, tensor.data().size()));
  return tensor;
}

// The kind by the attribute's type; if an old writer omitted the type, by the field that is set.
OnnxKind kind_of(const onnx::AttributeProto& proto) {
  switch (proto.type()) {
    case onnx::AttributeProto::FLOAT: return OnnxKind::number;
    case onnx::AttributeProto::INT: return OnnxKind::whole;
    case onnx::AttributeProto::STRING: return OnnxKind::word;
    case onnx::AttributeProto::TENSOR: return OnnxKind::tensor;
    case onnx::AttributeProto::INTS: return OnnxKind::wholes;
    case onnx::AttributeProto::UNDEFINED: break;
    default: return OnnxKind::other;
  }
  if (proto.has_f()) return OnnxKind::number;
  if (proto.has_i()) return OnnxKind::whole;
  if (proto.has_s()) return OnnxKind::word;
  if (proto.has_t()) return OnnxKind::tensor;
  return proto.ints_size() > 0     ? OnnxKind::wholes
         : proto.floats_size() > 0 ? OnnxKind::other
                                   : OnnxKind::none;
}

Result<OnnxNode> node_of(const onnx::NodeProto& proto) {
  OnnxNode node{proto.op_type(), proto.name(), {}, {}, {}};
  node.inputs.assign(proto.input().begin(), proto.input().end());
  node.outputs.assign(proto.output().begin(), proto.output().end());
  if (!proto.domain().empty() && proto.domain() != "ai.onnx")
    node.operation = proto.domain() + "." + node.operation;
  for (const auto& attribute : proto.attribute()) {
    OnnxAttribute made;
    made.kind = kind_of(attribute);
    made.whole = attribute.i();
    made.number = as_written(attribute.f());
    made.word = attribute.s();
    made.wholes.assign(attribute.ints().begin(), attribute.ints().end());
    if (attribute.has_t()) {
      WEFT_TRY(tensor, tensor_of(attribute.t()));
      made.tensor = std::move(tensor);
    }
    if (attribute.has_g() || attribute.graphs_size() > 0)
      return user_error(fmt::format("{} '{}': Weft does not support control flow",
                                    formats::shown(proto.op_type()), formats::shown(proto.name())));
    if (!node.attributes.emplace(attribute.name(), std::move(made)).second)
      return user_error(fmt::format("{} '{}': {} is given twice", formats::shown(proto.op_type()),
                                    formats::shown(proto.name()), formats::shown(attribute.name())));
  }
  return node;
}

Result<OnnxValue> value_of(const onnx::ValueInfoProto& proto) {
  OnnxValue value;
  value.name = proto.name();
  if (!proto.type().has_tensor_type())
    return user_error(
        fmt::format("input {}: expected a tensor, found something else", formats::shown(proto.name())));
  const auto& type = proto.type().tensor_type();
  WEFT_TRY(dtype, dtype_of(type.elem_type(), proto.name()));
  value.dtype = dtype;
  if (!type.has_shape() || type.shape().dim_size() > kMostOnnxDims)
    return user_error(fmt::format("input {}: expected a shape of at most {} dims",
                                  formats::shown(proto.name()), kMostOnnxDims));
  for (const auto& dim : type.shape().dim()) {
    const bool known = dim.has_dim_value() && dim.dim_value() > 0;
    if (dim.dim_value() > kMostOnnxDim)
      return user_error(fmt::format("input {}: expected dims up to {}, found {}",
                                    formats::shown(proto.name()), kMostOnnxDim, dim.dim_value()));
    value.shape.push_back(known ? dim.dim_value() : 0);
    if (!known) value.open.push_back(dim.dim_param().empty() ? "?" : formats::shown(dim.dim_param()));
  }
  return value;
}

}  // namespace

Result<OnnxGraph> read_onnx(std::string_view bytes) {
  const std::optional<LightOnnx> light = without_large_tensors(bytes);
  const std::string_view parsed = light ? std::string_view(light->bytes) : bytes;
  onnx::ModelProto model;
  google::protobuf::io::CodedInputStream stream(
      reinterpret_cast<const std::uint8_t*>(parsed.data()),
      static_cast<int>(std::min<std::size_t>(parsed.size(), 2147483647)));
  stream.SetRecursionLimit(100);
  if (parsed.size() > 2147483647 || !model.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage() ||
      !model.has_graph())
    return user_error(
        fmt::format("expected an ONNX model, found an error after byte {}", stream.CurrentPosition()));
  OnnxGraph graph;
  graph.name = model.graph().name();
  for (const auto& opset : model.opset_import())
    if (opset.domain().empty() || opset.domain() == "ai.onnx") graph.opset = opset.version();
  if (graph.opset < kOldestOpset || graph.opset > kNewestOpset)
    return user_error(
        fmt::format("expected an opset from {} to {}, found {}", kOldestOpset, kNewestOpset, graph.opset));
  if (model.graph().node_size() > kMostOnnxNodes)
    return user_error(
        fmt::format("expected at most {} nodes, found {}", kMostOnnxNodes, model.graph().node_size()));
  std::set<std::string, std::less<>> given;
  for (int i = 0; i < model.graph().initializer_size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool left_out = light && at < light->data.size();
    WEFT_TRY(tensor,
             tensor_of(model.graph().initializer(i), left_out ? light->data[at] : std::string_view()));
    given.insert(tensor.name);
    graph.tensors.push_back(std::move(tensor));
  }
  for (const auto& proto : model.graph().input()) {
    if (given.contains(proto.name())) continue;
    WEFT_TRY(value, value_of(proto));
    graph.inputs.push_back(std::move(value));
  }
  for (const auto& proto : model.graph().node()) {
    WEFT_TRY(node, node_of(proto));
    graph.nodes.push_back(std::move(node));
  }
  for (const auto& proto : model.graph().output()) graph.outputs.push_back(proto.name());
  return graph;
}

#else

Result<OnnxGraph> read_onnx(std::string_view) {
  return user_error("this Weft was built without libonnx, which reads ONNX files",
                    "install libonnx-dev and build again");
}

#endif

}  // namespace weft::imports
