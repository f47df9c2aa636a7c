// weft/translate/imports/onnx_printer.h -- prints an ONNX model's nodes as entries of a query.
//
// An elementwise node is printed inline in the entry of its only reader.
//
//   onnx_text.cpp     names, sources, entries, outputs
//   onnx_pieces.cpp   the text of a node
//
// Included by these only.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "weft/translate/imports/model_text.h"
#include "weft/translate/imports/onnx_model.h"

namespace weft::imports {

class OnnxPrinter {
 public:
  using ModelNode = formats::ModelNode;
  using ModelShape = formats::ModelShape;
  using Operation = formats::ModelOperation;
  using Names = std::vector<std::string>;

  OnnxPrinter(const OnnxModel& model, std::string name);
  Result<OnnxText> print(std::string_view kind);
  // Sets the repeated layer: its name, and the indices of its arguments.
  void calls(std::string layer, std::vector<Names> arguments);
  std::vector<Names> arguments() const { return {names_.begin(), names_.begin() + file_.inputs}; }
  // For a layer: whether its input and output have the same indices.
  bool goes_on() const { return names_[0] == names_[file_.outputs[0]]; }

 private:
  // The text of a value that is not an entry yet.
  struct Piece {
    std::string text;
    bool sum = false;               // needs parentheses as a factor
    std::vector<std::string> from;  // sources
    std::string joins = {};         // JOIN clauses after the sources
    bool grouped = false;           // GROUP BY its indices
    bool alone = false;             // needs its own entry: its clauses would apply to all sources
  };

  void unite(const std::string& name, const std::string& kept);
  // Whether `name`, which is not that of this index of the repeated layer, is that of another one.
  bool is_other_index(const std::string& name, const std::string& of_layer) const;
  static bool holds(const Names& names, const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  }

  std::string outputs();
  std::string loss();
  // The indices of labels: those of the scores without the classes.
  Names rows_of(Names scores) const;
  // Whether a transpose is only read by products, which name their operands' indices themselves. It
  // needs no entry.
  bool is_transposed_inline(std::size_t n) const;
  // "features.0.weight" becomes features_0_weight.
  static std::string plain(std::string_view id);
  std::string unique(std::string name);
  // A size is declared once: an index with another size gets another name.
  std::string sized(const std::string& index, std::int64_t size, const Names& others);
  bool is_whole(std::uint32_t input) const;
  void declare_sources();
  // x AS (.. of x ..): input and output have the same name.
  void repeat(std::size_t n);
  // "[s, k AS t]": renames `own` to `names`; empty if they are equal.
  static std::string under(const Names& own, const Names& names);
  std::string free_name(std::initializer_list<std::string> names, const Names& others);
  // Adds the value as a source under these index names; returns its name in the query.
  std::string source(Piece& piece, std::uint32_t value, const Names& names);
  std::string source(Piece& piece, std::uint32_t value, const std::string& indices);
  bool resizes(std::uint32_t value) const;
  bool is_read_inline(std::uint32_t value) const;
  void add_entry(std::uint32_t value, const std::string& stem, Piece piece);
  // The pending piece of the value, or the value as a source.
  Piece start(std::uint32_t value, const Names& names);

  // The text of node n; see onnx_pieces.cpp.
  Result<Piece> piece_of(std::size_t n);
  Piece one(std::size_t n, const ModelNode& node, const Names& wanted);
  static std::string over(const Names& all, const Names& without);
  // Broadcasts dims of size 1 by merging them into a neighbour; the index names of the query then
  // repeat them.
  std::string repeated(Piece& piece, std::uint32_t value, const ModelShape& result, const Names& wanted);
  Piece two(std::size_t n, const ModelNode& node, const Names& wanted);
  // A form with one placeholder per operand.
  Piece several(std::size_t n, const ModelNode& node, const Names& wanted);
  Piece slice(const ModelNode& node, const Names& wanted);
  Piece reduce(std::size_t n, const ModelNode& node, const Names& wanted);
  Result<Piece> broadcast(const ModelNode& node, const ModelShape& to, const Names& wanted);
  Piece einsum(const ModelNode& node, const Names& wanted);
  Piece function(std::size_t n, const ModelNode& node, Names wanted);
  void name_sizes(std::size_t n);
  Piece conv2d_transpose(std::size_t n, const ModelNode& node, const Names& wanted);
  void add_bias(Piece& piece, std::size_t n, const Names& wanted);
  void rename_sizes(std::size_t n);
  // Declares an index with this size; fails if it has another size.
  Status declare(const std::string& index, std::int64_t size, const ModelShape& to);
  Piece matmul(const ModelNode& node, const Names& wanted);
  Piece conv2d(std::size_t n, const ModelNode& node, const Names& wanted);
  Piece layer_norm(const ModelNode& node, const Names& wanted);
  void scale_and_shift(Piece& piece, const ModelNode& node, const std::string& along);
  Piece batch_norm(const ModelNode& node, const Names& wanted);
  Piece transpose(const ModelNode& node, const Names& wanted);
  Piece concat(const ModelNode& node, const Names& wanted);
  Piece embedding(const ModelNode& node, const Names& wanted);
  // Merges blocks of dims, splits them into declared sizes, or both.
  Result<Piece> reshape(const ModelNode& node, const ModelShape& to, const Names& wanted);

  const OnnxModel& model_;
  const formats::ModelFile& file_;
  LayerText body_;
  std::string layer_;
  std::vector<Names> layer_arguments_;
  std::vector<int> uses_;
  std::vector<std::size_t> reader_;  // by value: its last reader
  std::vector<Names> names_;         // by value: its indices in the text
  std::vector<std::string> entry_;   // by value: its name in the text
  std::map<std::uint32_t, Piece> pieces_;
  std::map<std::uint32_t, std::size_t> turned_;  // transposed values without entry: their node
  std::map<std::uint32_t, std::string> weights_;
  std::set<std::string, std::less<>> taken_;
  std::map<std::string, std::int64_t, std::less<>> sizes_;
  std::vector<std::pair<std::string, std::int64_t>> order_;
  std::map<std::string, int> counts_;
  std::int64_t parameters_ = 0;
  int fresh_ = 0;
};

}  // namespace weft::imports
