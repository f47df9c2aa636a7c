// Converts between global values and the ranks' values: slices the outermost axis first and joins
// it last.
#include <bit>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/plan/ops/exchange.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/spmd/mesh.h"

namespace weft::spmd {
namespace {

using plan::AxisLayout;

// Any element of the field; a small integer for other number types, and for positions and counters.
template <class T>
T random_number(plan::DType dtype, const ops::Numbers<T>& numbers, Random& random) {
  if constexpr (std::is_same_v<T, ops::Field>)
    if (is_real(dtype)) return ops::Field(random.next());
  return numbers.from_integer(random.between(-8, 8));
}

template <class T>
ops::Tensor<T> random_like(const ops::Tensor<T>& x, plan::DType dtype, const ops::Numbers<T>& numbers,
                           Random& random) {
  ops::Tensor<T> drawn = x;
  for (T& element : drawn.data) element = random_number(dtype, numbers, random);
  return drawn;
}

// `ranks` addends whose combination is x.
template <class T>
std::vector<ops::Tensor<T>> addends_of(const ops::Tensor<T>& x, plan::DType dtype, std::int32_t ranks,
                                       plan::Monoid monoid, const ops::Numbers<T>& numbers, Random& random) {
  std::vector<ops::Tensor<T>> addends(static_cast<std::size_t>(ranks), x);
  for (std::size_t i = 0; i < x.data.size(); ++i) {
    const std::size_t holder = random.below(addends.size());
    for (std::size_t rank = 0; rank < addends.size(); ++rank) {
      if (rank == holder) continue;
      const T drawn = random_number(dtype, numbers, random);
      T& addend = addends[rank].data[i];
      if (monoid == plan::Monoid::max) {
        addend = numbers.min(x.data[i], drawn);
      } else if (monoid == plan::Monoid::min) {
        addend = numbers.max(x.data[i], drawn);
      } else {
        addend = drawn;
        addends[holder].data[i] -= drawn;
      }
    }
  }
  return addends;
}

// The values of x that the ranks along one axis hold.
template <class T>
std::vector<ops::Tensor<T>> parts_of(const ops::Tensor<T>& x, const plan::Type& type,
                                     const AxisLayout& layout, std::int32_t ranks,
                                     const ops::Numbers<T>& numbers, Random& random) {
  if (layout.is_partial()) return addends_of(x, type.dtype, ranks, layout.monoid, numbers, random);
  std::vector<ops::Tensor<T>> parts;
  for (std::int32_t i = 0; i < ranks; ++i) {
    if (layout.is_sliced()) {
      const auto dim = static_cast<std::size_t>(type.position(layout.index));
      parts.push_back(block_of(x, dim,
                               plan::with_borders(plan::share_of(x.sizes[dim], ranks, i), layout.before,
                                                  layout.after, x.sizes[dim])));
    } else {
      parts.push_back(layout.is_varying() && i > 0 ? random_like(x, type.dtype, numbers, random) : x);
    }
  }
  return parts;
}

template <class T>
bool same_bits(const ops::Tensor<T>& a, const ops::Tensor<T>& b) {
  return a.sizes == b.sizes && a.data.size() == b.data.size() &&
         (a.data.empty() || std::memcmp(a.data.data(), b.data.data(), a.data.size() * sizeof(T)) == 0);
}

// Concatenates shares without their borders. Fails if a border differs from the block that owns it.
template <class T>
Result<ops::Tensor<T>> join_bordered(std::span<const ops::Tensor<T>* const> shares, std::size_t dim,
                                     std::int64_t size, const AxisLayout& layout, std::string_view axis) {
  const auto ranks = static_cast<std::int32_t>(shares.size());
  const auto share_of = [&](std::int32_t i) {
    return plan::with_borders(plan::share_of(size, ranks, i), layout.before, layout.after, size);
  };
  std::vector<ops::Tensor<T>> blocks;
  for (std::int32_t i = 0; i < ranks; ++i) {
    const plan::Share block = plan::share_of(size, ranks, i);
    blocks.push_back(block_of(*shares[static_cast<std::size_t>(i)], dim,
                              {block.size == 0 ? 0 : block.begin - share_of(i).begin, block.size}));
  }
  std::vector<const ops::Tensor<T>*> all;
  for (const ops::Tensor<T>& block : blocks) all.push_back(&block);
  ops::Tensor<T> joined = end_to_end<T>(all, dim);
  for (std::int32_t i = 0; i < ranks; ++i)
    if (!same_bits(*shares[static_cast<std::size_t>(i)], block_of(joined, dim, share_of(i))))
      return user_error(
          fmt::format("the borders of share {} along mesh axis {} differ from its neighbours", i, axis));
  return joined;
}

template <class T>
Status check_replicas(const MeshTensor<T>& held, const plan::Mesh& mesh) {
  for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis) {
    if (!held.layout.axes[axis].is_replicated()) continue;
    for (std::int32_t rank = 0; rank < mesh.ranks(); ++rank)
      if (const std::int32_t first = mesh.group(rank, axis)[0];
          !same_bits(held.ranks[first], held.ranks[rank]))
        return user_error(fmt::format("replicas differ along mesh axis {}: ranks {} and {}",
                                      mesh.axes[axis].name, first, rank));
  }
  return {};
}

}  // namespace

template <class T>
Result<MeshTensor<T>> split_for_mesh(const ops::Tensor<T>& whole, const plan::Type& type,
                                     const plan::Layout& layout, const plan::Mesh& mesh,
                                     const ops::Numbers<T>& numbers, Random& random) {
  WEFT_CHECK(layout.axes.size() == mesh.axes.size());
  if (whole.sizes != ops::sizes_of(type.dims) || whole.elements() != type.elements())
    return user_error(fmt::format("a value to split has sizes [{}], its type [{}]",
                                  fmt::join(whole.sizes, ", "), fmt::join(ops::sizes_of(type.dims), ", ")));
  // Copy replicas last, so that they have the same random addends.
  std::vector<ops::Tensor<T>> distinct = {whole};
  for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis) {
    if (layout.axes[axis].is_replicated()) continue;
    std::vector<ops::Tensor<T>> next;
    for (const ops::Tensor<T>& x : distinct)
      for (ops::Tensor<T>& part :
           parts_of(x, type, layout.axes[axis], mesh.axes[axis].ranks, numbers, random))
        next.push_back(std::move(part));
    distinct = std::move(next);
  }
  MeshTensor<T> held{layout, {}};
  for (std::int32_t rank = 0; rank < mesh.ranks(); ++rank) {
    std::size_t which = 0;
    for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis)
      if (!layout.axes[axis].is_replicated())
        which = which * static_cast<std::size_t>(mesh.axes[axis].ranks) +
                static_cast<std::size_t>(mesh.coordinate(rank, axis));
    held.ranks.push_back(distinct[which]);
  }
  return held;
}

template <class T>
Result<ops::Tensor<T>> join_from_mesh(const MeshTensor<T>& held, const plan::Type& type,
                                      const plan::Mesh& mesh, const ops::Numbers<T>& numbers) {
  WEFT_CHECK(held.ranks.size() == static_cast<std::size_t>(mesh.ranks()) &&
             held.layout.axes.size() == mesh.axes.size());
  WEFT_TRY_STATUS(check_replicas(held, mesh));
  std::vector<ops::Tensor<T>> parts = held.ranks;
  for (std::size_t axis = mesh.axes.size(); axis-- > 0;) {
    const auto ranks = static_cast<std::size_t>(mesh.axes[axis].ranks);
    const AxisLayout& layout = held.layout.axes[axis];
    if (layout.is_varying())
      return user_error(fmt::format("the value varies along mesh axis {}", mesh.axes[axis].name));
    std::vector<ops::Tensor<T>> joined;
    for (std::size_t first = 0; first < parts.size(); first += ranks) {
      std::vector<const ops::Tensor<T>*> group;
      for (std::size_t i = 0; i < ranks; ++i) group.push_back(&parts[first + i]);
      if (layout.has_borders()) {
        const auto dim = static_cast<std::size_t>(type.position(layout.index));
        WEFT_TRY(whole, join_bordered<T>(group, dim, type.dims[dim].size, layout, mesh.axes[axis].name));
        joined.push_back(std::move(whole));
      } else if (layout.is_sliced()) {
        joined.push_back(end_to_end<T>(group, static_cast<std::size_t>(type.position(layout.index))));
      } else if (layout.is_partial()) {
        joined.push_back(combination<T>(group, layout.monoid, numbers));
      } else {
        joined.push_back(*group[0]);
      }
    }
    parts = std::move(joined);
  }
  return std::move(parts[0]);
}

#define WEFT_MESH_TENSOR(T)                                                                                  \
  template Result<MeshTensor<T>> split_for_mesh(const ops::Tensor<T>&, const plan::Type&,                    \
                                                const plan::Layout&, const plan::Mesh&,                      \
                                                const ops::Numbers<T>&, Random&);                            \
  template Result<ops::Tensor<T>> join_from_mesh(const MeshTensor<T>&, const plan::Type&, const plan::Mesh&, \
                                                 const ops::Numbers<T>&);
WEFT_MESH_TENSOR(float)
WEFT_MESH_TENSOR(double)
WEFT_MESH_TENSOR(ops::Field)
WEFT_MESH_TENSOR(ops::Rounded)
#undef WEFT_MESH_TENSOR

}  // namespace weft::spmd
