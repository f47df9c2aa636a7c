// weft/program/tasks/grouper.h -- the implementation of group_nodes.
//
//   grouping.cpp            the kind of a node's group; copies, products, calls
//   grouping_rows.cpp       which nodes share a pass over the same rows
//   grouping_exchange.cpp   memory layout of exchanged shards
//   grouping_joined.cpp     results written directly into a concatenation
//   grouping_split_rows.cpp      tables in the layout that products read and write
//
// Included only by those.
#pragma once
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "weft/plan/ops/local_exchange.h"
#include "weft/program/tasks/grouping.h"

namespace weft::program {

// The place with a row pitch that is a multiple of eight elements, for rows along the fastest
// index.
Place with_even_rows(Place place);

class Grouper {
 public:
  Grouper(const plan::Graph& graph, const Readers& readers, const std::vector<bool>& needed, bool any_float,
          std::span<const std::uint32_t> turns, bool accelerated);

  Grouping run();

 private:
  // The row that a node needs: `fixed` if it must be exactly that.
  struct Row {
    std::size_t size;
    bool fixed;
  };

  void add(const plan::NodeView& node);
  void add_view(const plan::NodeView& node);
  void add_rows(const plan::NodeView& node);
  void add_product(const plan::NodeView& node);
  void add_call(const plan::NodeView& node);
  void add_attention(const plan::NodeView& node);
  void add_exchange(const plan::NodeView& node);

  // On accelerators, scatter-add and gather accept a row index stored as several axes, see
  // axes_of(). If all readers of a scatter-add see its rows split, it gets the layout that products
  // want. If only gathers read a merged value, it keeps its layout.
  bool add_scatter_split(const plan::NodeView& node);
  bool is_gathered_split(const plan::NodeView& merge) const;

  bool is_float(plan::DType dtype) const {
    return is_real(dtype) && (any_float_ || dtype != plan::DType::f64);
  }
  static bool is_narrow(plan::DType dtype) { return dtype == plan::DType::bf16 || dtype == plan::DType::f16; }
  // Lanes are floats: booleans are 1 or 0, and narrow types occur only in memory.
  bool is_lane(plan::DType dtype) const { return is_float(dtype) || dtype == plan::DType::boolean; }
  // Constants, positions, and pointwise functions of these only.
  bool is_recomputed(const plan::NodeView& node) const;
  bool is_product(const plan::NodeView& node) const;
  // Whether it is a cast to f32 that only optimizers and losses over classes read, whose
  // accelerator kernels read narrow types directly.
  bool is_read_narrow(const plan::NodeView& node) const;
  // For such a loss whose gradient only a cast to a narrow type reads: the cast's result, which the
  // kernel then writes.
  std::optional<plan::ValueId> narrow_result(const plan::NodeView& node) const;
  // Whether rows may be padded to multiples of 16 bytes: for logits that only losses over classes
  // read, with classes as rows, and gradients of such losses that only products read.
  bool is_logits(const plan::NodeView& product, const Place& place) const;
  // Summed indices that are not adjacent split one product into many that accumulate in memory. On
  // accelerators a copy that makes them adjacent is far cheaper.
  void join_sums(const plan::NodeView& node, Place& a, Place& b, const Place& c);
  bool feeds_products(plan::ValueId value) const;
  // The loss' operand in its own layout, if its rows are evenly spaced.
  std::optional<Place> in_even_rows(const plan::NodeView& loss);
  bool runs_by_rows(const plan::NodeView& node) const;

  // The place of a value; stores it now if it was not stored.
  const Place& stored(plan::ValueId value);
  // The same in the order of its type and dense.
  Place plain(plan::ValueId value);
  // The same in that order and dense.
  Place ordered(plan::ValueId value, const Order& order);
  Place copied(plan::ValueId value, Place to);
  // Like copied(), but all readers share the copy: accelerators have the memory, and copies are
  // slow there.
  Place copied_once(plan::ValueId value, const Place& to);
  // `from`: the value's place, or a part of it.
  void add_copy(plan::ValueId value, const Place& from, const Place& to);
  // Copies the value to f32 in the same layout.
  Place widened(plan::ValueId value, const Place& place);

  // The node's index space, in the order of the operand that has all indices.
  std::vector<plan::Dim> domain_of(const plan::NodeView& node) const;
  static std::optional<Row> row_wish(const plan::NodeView& node, std::span<const plan::Dim> domain);
  // Whether the group can include the node; then `row` is the row that both need.
  static bool fits(const Group& group, const plan::NodeView& node, std::span<const plan::Dim> domain,
                   Row& row);
  bool has_even_operands(const plan::NodeView& node, std::span<const plan::Dim> domain,
                         std::size_t row) const;
  // False if an operand is ready only after the group: the group's own sums, or values that depend
  // on it. Also false if the group is much earlier and joining saves no store: the forward pass
  // would compute what the backward pass needs, and keep it.
  bool may_join(std::uint32_t candidate, const plan::NodeView& node) const;
  plan::ValueId owner(plan::ValueId value) const;

  Place with_sums_last(const plan::NodeView& node, std::size_t operand) const;
  Place staged(const plan::NodeView& node, const ops::LocalExchange& what);
  // `fresh`: the first of the buffers of copies made for it.
  void add_bucket(const plan::NodeView& node, const ops::LocalExchange& what, Group& group, BufferId fresh);
  // Whether only a bucket reads the memory of this value, so that it can be stored in the bucket.
  bool is_movable(plan::ValueId value, const Place& place) const;
  // Adds a concat with few or no copies; false if it must copy all its operands.
  bool add_joined(const plan::NodeView& node);
  bool is_part(const plan::NodeView& node, std::size_t operand, const Place& place, const Order& order,
               bool is_cut_again) const;
  // Whether a slice of it is read, directly or through views.
  bool is_sliced(plan::ValueId value) const;
  // The place after buffers have been moved.
  Place moved(Place place) const;
  // Writes an optimizer's results over the parameter and the moments that it updates.
  void write_in_place(const plan::NodeView& node, Group& group) const;

  // Adds to the group of an f8 product the nodes that multiply it by scales, and returns the final
  // result; `scales` are the factors.
  plan::ValueId take_scales(const plan::NodeView& product, Group& group, std::vector<plan::ValueId>& scales);

  // `also`: read in addition to the node's operands.
  void finish(Group group, const plan::NodeView& node, std::span<const plan::ValueId> also = {});
  void set(plan::ValueId value, const Place& place, std::uint32_t group);
  // One more than the depth of every group that makes one of `values`, except `except`.
  std::uint32_t depth_after(std::span<const plan::ValueId> values, std::uint32_t except = kNoGroup) const;
  void mark_read(std::uint32_t reader, std::span<const plan::ValueId> values);

  const plan::Graph& graph_;
  const Readers& readers_;
  ProductOrders orders_;
  const std::vector<bool>& needed_;
  const bool any_float_;
  const std::span<const std::uint32_t> turns_;
  const bool accelerated_;
  const std::vector<plan::ValueId> next_;
  Grouping made_;
  std::uint32_t heavy_ = 0;                                       // products, calls and exchanges so far
  std::uint32_t last_exchange_ = kNoGroup;                        // the group of the latest
  std::unordered_map<std::uint32_t, std::size_t> copies_;         // by buffer of the copy: its group
  std::unordered_map<std::uint32_t, std::vector<Place>> copied_;  // by value: results of copied_once()
  std::unordered_set<std::uint32_t> joined_;  // buffers that contain others: these do not move
  // By buffer: the buffer that it becomes a part of, and its first element there. See add_bucket(),
  // add_joined().
  std::unordered_map<std::uint32_t, std::pair<BufferId, std::int64_t>> moves_;
};

bool is_graph_output(const plan::Graph& graph, plan::ValueId value);

}  // namespace weft::program
