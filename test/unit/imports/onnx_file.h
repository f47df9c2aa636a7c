// An ONNX file, written field by field.
//
//   OnnxFile file;
//   file.input("x", {2, 3}).tensor("w", {3, 4}, numbers).node("MatMul", {"x", "w"}, {"y"}).output("y", {2, 4});
//   import_onnx(file.bytes(), "m");
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/formats/protobuf_wire.h"

namespace weft::imports {

class OnnxFile {
 public:
  using Shape = std::vector<std::int64_t>;
  enum Type : std::uint64_t { kFloat = 1, kInt64 = 7, kBool = 9 };
  struct Attribute {
    std::string name;
    std::vector<std::int64_t> wholes = {};
    bool one = false;  // a single number rather than a list
    std::string word = {};
    std::optional<float> number = {};
  };

  OnnxFile& input(std::string_view name, const Shape& shape, Type type = kFloat) {
    graph_.field(11, info(name, shape, type));
    return *this;
  }
  OnnxFile& output(std::string_view name, const Shape& shape) {
    graph_.field(12, info(name, shape, kFloat));
    return *this;
  }
  template <class T>
  OnnxFile& tensor(std::string_view name, const Shape& shape, const std::vector<T>& numbers, Type type) {
    formats::WireWriter tensor;
    for (const std::int64_t dim : shape) tensor.field(1, static_cast<std::uint64_t>(dim));
    tensor.field(2, type);
    tensor.field(8, name);
    tensor.field(9,
                 std::string_view(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)));
    graph_.field(5, tensor.bytes());
    return *this;
  }
  OnnxFile& floats(std::string_view name, const Shape& shape, const std::vector<float>& numbers) {
    return tensor(name, shape, numbers, kFloat);
  }
  OnnxFile& wholes(std::string_view name, const std::vector<std::int64_t>& numbers) {
    return tensor(name, {static_cast<std::int64_t>(numbers.size())}, numbers, kInt64);
  }
  OnnxFile& whole(std::string_view name, std::int64_t number) {
    return tensor(name, {}, std::vector<std::int64_t>{number}, kInt64);
  }
  OnnxFile& node(std::string_view operation, std::initializer_list<std::string_view> inputs,
                 std::initializer_list<std::string_view> outputs,
                 const std::vector<Attribute>& attributes = {}) {
    formats::WireWriter node;
    for (const std::string_view name : inputs) node.field(1, name);
    for (const std::string_view name : outputs) node.field(2, name);
    const std::size_t dot = operation.find('.');  // "DOMAIN.NAME"
    node.field(4, dot == std::string_view::npos ? operation : operation.substr(dot + 1));
    if (dot != std::string_view::npos) node.field(7, operation.substr(0, dot));
    for (const Attribute& attribute : attributes) {
      formats::WireWriter made;
      made.field(1, std::string_view(attribute.name));
      if (!attribute.word.empty()) made.field(4, std::string_view(attribute.word));
      for (const std::int64_t whole : attribute.wholes)
        made.field(attribute.one ? 3 : 8, static_cast<std::uint64_t>(whole));
      std::string bytes = made.take();
      if (attribute.number) {  // field 2, of four bytes
        bytes += '\x15';
        bytes.append(reinterpret_cast<const char*>(&*attribute.number), sizeof(float));
      }
      node.field(5, bytes);
    }
    graph_.field(1, node.bytes());
    return *this;
  }
  std::string bytes() const {
    formats::WireWriter opset, model;
    opset.field(2, 17);
    model.field(8, opset.bytes());
    model.field(7, graph_.bytes());
    return model.take();
  }

 private:
  static std::string info(std::string_view name, const Shape& shape, Type type) {
    formats::WireWriter dims, tensor, whole, value;
    for (const std::int64_t dim : shape) {
      formats::WireWriter one;
      one.field(1, static_cast<std::uint64_t>(dim));
      dims.field(1, one.bytes());
    }
    tensor.field(1, type);
    tensor.field(2, dims.bytes());
    whole.field(1, tensor.bytes());
    value.field(1, name);
    value.field(2, whole.bytes());
    return value.take();
  }

  formats::WireWriter graph_;
};

}  // namespace weft::imports
