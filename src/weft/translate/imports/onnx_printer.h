// weft/translate/imports/onnx_printer.h -- an ONNX model's nodes as the entries of a query; elementwise ones go into the entry of what
// they read alone.
//
//   onnx_text.cpp     names, sources, entries, outputs
//   onnx_pieces.cpp   what a node is as text
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
  // The layer that is repeated: its name, and the indices of what it is given.
  void calls(std::string layer, std::vector<Names> arguments);
  std::vector<Names> arguments() const { return {names_.begin(), names_.begin() + file_.inputs}; }
  // Of a layer: what goes from one to the next has the same indices on both sides.
  bool goes_on() const { return names_[0] == names_[file_.outputs[0]]; }

 private:
  // A value that is not an entry yet.
  struct Piece {
    std::string text;
    bool sum = false;               // needs parentheses as a factor
    std::vector<std::string> from;  // sources
    std::string joins = {};         // behind them
    bool grouped = false;           // GROUP BY its indices
    bool alone = false;             // an entry of its own: what it says holds for all sources
  };

  static bool holds(const Names& names, const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  }

  std::string outputs();
  std::string loss();
  // Indices of labels: those of the scores without the classes.
  Names rows_of(Names scores) const;
  // Products name their operands' indices as they need them: what is only turned before is no entry.
  bool is_turned_in_place(std::size_t n) const;
  // "features.0.weight" is features_0_weight.
  static std::string plain(std::string_view id);
  std::string unique(std::string name);
  // Sizes are declared once: an index that is of another size here gets another name.
  std::string sized(const std::string& index, std::int64_t size, const Names& others);
  bool is_whole(std::uint32_t input) const;
  void declare_sources();
  // x AS (.. of x ..): what goes in and what comes out have one name.
  void repeat(std::size_t n);
  // "[s, k AS t]": what is called so, under these names; nothing where they are the same.
  static std::string under(const Names& own, const Names& names);
  std::string free_name(std::initializer_list<std::string> names, const Names& others);
  // The value as a query sees it under these names; returns what the query calls it.
  std::string source(Piece& piece, std::uint32_t value, const Names& names);
  std::string source(Piece& piece, std::uint32_t value, const std::string& indices);
  bool is_read_inline(std::uint32_t value) const;
  void add_entry(std::uint32_t value, const std::string& stem, Piece piece);
  // What is pending, or the value as it is.
  Piece start(std::uint32_t value, const Names& names);

  // What a node is; see onnx_pieces.cpp.
  Result<Piece> piece_of(std::size_t n);
  Piece one(std::size_t n, const ModelNode& node, const Names& wanted);
  static std::string over(const Names& all, const Names& without);
  // Dims of size 1 that the other operand has more of are merged with a neighbour: names repeat what lacks them.
  std::string repeated(Piece& piece, std::uint32_t value, const ModelShape& result, const Names& wanted);
  Piece two(std::size_t n, const ModelNode& node, const Names& wanted);
  // A form with a hole for each operand.
  Piece several(std::size_t n, const ModelNode& node, const Names& wanted);
  Piece slice(const ModelNode& node, const Names& wanted);
  Piece reduce(std::size_t n, const ModelNode& node, const Names& wanted);
  Result<Piece> broadcast(const ModelNode& node, const ModelShape& to, const Names& wanted);
  Piece einsum(const ModelNode& node, const Names& wanted);
  Piece conv2d_transpose(std::size_t n, const ModelNode& node, const Names& wanted);
  void add_bias(Piece& piece, std::size_t n, const Names& wanted);
  void rename_sizes(std::size_t n);
  // An index that the text declares with this size; fails where it has another.
  Status declare(const std::string& index, std::int64_t size, const ModelShape& to);
  Piece matmul(const ModelNode& node, const Names& wanted);
  Piece conv2d(std::size_t n, const ModelNode& node, const Names& wanted);
  Piece layer_norm(const ModelNode& node, const Names& wanted);
  void scale_and_shift(Piece& piece, const ModelNode& node, const std::string& along);
  Piece batch_norm(const ModelNode& node, const Names& wanted);
  Piece transpose(const ModelNode& node, const Names& wanted);
  Piece concat(const ModelNode& node, const Names& wanted);
  Piece embedding(const ModelNode& node, const Names& wanted);
  // Blocks of dims are merged, or cut into sizes that are declared, or first the one and then the other.
  Result<Piece> reshape(const ModelNode& node, const ModelShape& to, const Names& wanted);

  const OnnxModel& model_;
  const formats::ModelFile& file_;
  LayerText body_;
  std::string layer_;
  std::vector<Names> layer_arguments_;
  std::vector<int> uses_;
  std::vector<std::size_t> reader_;  // by value: the last node that reads it
  std::vector<Names> names_;         // by value: its indices in the text
  std::vector<std::string> entry_;   // by value: what the text calls it
  std::map<std::uint32_t, Piece> pieces_;
  std::map<std::uint32_t, std::size_t> turned_;  // values that are no entries: the node that turns them
  std::map<std::uint32_t, std::string> weights_;
  std::set<std::string, std::less<>> taken_;
  std::map<std::string, std::int64_t, std::less<>> sizes_;
  std::vector<std::pair<std::string, std::int64_t>> order_;
  std::map<std::string, int> counts_;
  std::int64_t parameters_ = 0;
  int fresh_ = 0;
};

}  // namespace weft::imports
