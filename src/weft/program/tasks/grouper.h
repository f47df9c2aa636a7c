// weft/program/tasks/grouper.h -- group_nodes at work: the groups so far, and the node that comes next.
//
//   grouping.cpp            what kind of group a node belongs to; copies, products, calls
//   grouping_rows.cpp       which nodes share a pass over the same rows
//   grouping_exchange.cpp   how shares lie in memory when they travel
//   grouping_joined.cpp     parts that are made where they are put together
//   grouping_apart.cpp      tables that lie as products read and write them
//
// Included by those alone.
#pragma once
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "weft/plan/ops/local_exchange.h"
#include "weft/program/tasks/grouping.h"

namespace weft::program {

// A place with rows, along what runs fastest, that begin at multiples of eight elements.
Place with_even_rows(Place place);

class Grouper {
 public:
  Grouper(const plan::Graph& graph, const Readers& readers, const std::vector<bool>& needed, bool any_float,
          std::span<const std::uint32_t> turns, bool accelerated);

  Grouping run();

 private:
  // How a node would have the row: `fixed` when it must be exactly that.
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

  // Accelerators' scatter-add and gather take rows that lie apart, see axes_of(): where all who read what a scatter-add
  // makes see its rows split, it lies as products want that; where only gathers read what is merged, it stays as it lies.
  bool add_scattered_apart(const plan::NodeView& node);
  bool is_gathered_apart(const plan::NodeView& merge) const;

  bool is_float(plan::DType dtype) const {
    return is_real(dtype) && (any_float_ || dtype != plan::DType::f64);
  }
  static bool is_narrow(plan::DType dtype) { return dtype == plan::DType::bf16 || dtype == plan::DType::f16; }
  // Lanes are floats: truth is 1 or 0 there, and fewer bits are for memory.
  bool is_lane(plan::DType dtype) const { return is_float(dtype) || dtype == plan::DType::boolean; }
  // Constants, positions, and pointwise functions of these alone.
  bool is_recomputed(const plan::NodeView& node) const;
  bool is_product(const plan::NodeView& node) const;
  // A cast to f32 for losses over classes and optimizers alone, whose kernels on accelerators read narrow numbers
  // themselves.
  bool is_read_narrow(const plan::NodeView& node) const;
  // Such a loss's gradient goes to a cast to a narrow type alone: what that makes, which the kernel then writes.
  std::optional<plan::ValueId> narrow_result(const plan::NodeView& node) const;
  // Where rows may begin at multiples of 16 bytes: logits that losses over classes read alone, which lie in rows of
  // classes, and such losses' gradients that products read alone.
  bool is_logits(const plan::NodeView& product, const Place& place) const;
  // Sums that do not lie side by side make many products of one, which add up in memory: on accelerators a copy that
  // puts them so is far cheaper.
  void join_sums(const plan::NodeView& node, Place& a, Place& b, const Place& c);
  bool feeds_products(plan::ValueId value) const;
  // The operand of a loss over classes as it lies, where its rows are evenly spaced.
  std::optional<Place> in_even_rows(const plan::NodeView& loss);
  bool runs_by_rows(const plan::NodeView& node) const;

  // The place of a value, stored now if it was not meant to be.
  const Place& stored(plan::ValueId value);
  // The same in the order of its type and without gaps.
  Place plain(plan::ValueId value);
  // The same in that order and without gaps.
  Place ordered(plan::ValueId value, const Order& order);
  Place copied(plan::ValueId value, Place to);
  // The same, one for all who want it so: on accelerators, which have the memory and copy slowly.
  Place copied_once(plan::ValueId value, const Place& to);
  // `from` is the value's place, or a part of it.
  void add_copy(plan::ValueId value, const Place& from, const Place& to);
  // The same numbers, as they lie, in f32.
  Place widened(plan::ValueId value, const Place& place);

  // What the node runs over, in the order of the operand that has it all.
  std::vector<plan::Dim> domain_of(const plan::NodeView& node) const;
  static std::optional<Row> row_wish(const plan::NodeView& node, std::span<const plan::Dim> domain);
  // True when the group can take the node as well; the group's row is then as both need it.
  static bool fits(const Group& group, const plan::NodeView& node, std::span<const plan::Dim> domain,
                   Row& row);
  bool has_even_operands(const plan::NodeView& node, std::span<const plan::Dim> domain,
                         std::size_t row) const;
  // Not when an operand is ready only after the group: its own sums, or what depends on it. Nor when
  // the group is long past and joining it saves no store: the backward pass would then compute what
  // it needs during the forward pass, and keep it.
  bool may_join(std::uint32_t candidate, const plan::NodeView& node) const;
  plan::ValueId owner(plan::ValueId value) const;

  Place with_sums_last(const plan::NodeView& node, std::size_t operand) const;
  Place staged(const plan::NodeView& node, const ops::LocalExchange& what);
  // `fresh`: from this buffer on, copies that were made for it.
  void add_bucket(const plan::NodeView& node, const ops::LocalExchange& what, Group& group, BufferId fresh);
  // Whether nobody but a bucket reads the memory of this value, so that it may lie wherever the bucket does.
  bool is_movable(plan::ValueId value, const Place& place) const;
  // Without a copy, or with fewer; false where a concat must copy all its operands.
  bool add_joined(const plan::NodeView& node);
  bool is_part(const plan::NodeView& node, std::size_t operand, const Place& place, const Order& order,
               bool is_cut_again) const;
  // Whether a part of it is read, through views or not.
  bool is_sliced(plan::ValueId value) const;
  // Where the place is once buffers have moved.
  Place moved(Place place) const;
  // An optimizer's results take the place of the parameter and the moments they renew.
  void write_in_place(const plan::NodeView& node, Group& group) const;

  // Takes into the group of a product of eight bits the nodes that multiply it by scales and nothing else, and says
  // what it then makes; `scales` are what they multiply by.
  plan::ValueId take_scales(const plan::NodeView& product, Group& group, std::vector<plan::ValueId>& scales);

  // `also`: read beside the operands of the node.
  void finish(Group group, const plan::NodeView& node, std::span<const plan::ValueId> also = {});
  void set(plan::ValueId value, const Place& place, std::uint32_t group);
  // Past every group that makes one of `values`, other than `except`.
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
  std::unordered_map<std::uint32_t, std::size_t> copies_;         // by the buffer of the copy: its group
  std::unordered_map<std::uint32_t, std::vector<Place>> copied_;  // by value: where copied_once() has put it
  std::unordered_set<std::uint32_t>
      joined_;  // buffers that others became parts of: these stay where they are
  // By buffer: the one that it becomes a part of, and from which element on. See add_bucket(), add_joined().
  std::unordered_map<std::uint32_t, std::pair<BufferId, std::int64_t>> moves_;
};

bool is_graph_output(const plan::Graph& graph, plan::ValueId value);

}  // namespace weft::program
