#include <algorithm>

#include <fmt/format.h>

#include "weft/rules/equation/algebra.h"

namespace weft::equation {
namespace {

// A tensor as outer x size x inner around one dim.
struct Around {
  Around(std::span<const std::int64_t> sizes, std::size_t dim) {
    for (std::size_t d = 0; d < dim; ++d) outer *= sizes[d];
    size = sizes[dim];
    for (std::size_t d = dim + 1; d < sizes.size(); ++d) inner *= sizes[d];
  }
  std::int64_t outer = 1, size = 1, inner = 1;
};

template <class T>
ops::Tensor<T> cut(const ops::Tensor<T>& x, std::size_t dim, SliceOf slice) {
  const Around from(x.sizes, dim);
  ops::Tensor<T> y;
  y.sizes = x.sizes;
  y.sizes[dim] = slice.end - slice.begin;
  for (std::int64_t outer = 0; outer < from.outer; ++outer) {
    const T* row = x.data.data() + outer * from.size * from.inner;
    y.data.insert(y.data.end(), row + slice.begin * from.inner, row + slice.end * from.inner);
  }
  return y;
}

template <class T>
ops::Tensor<T> join(std::span<const ops::Tensor<T>> parts, std::size_t dim) {
  ops::Tensor<T> y;
  y.sizes = parts[0].sizes;
  y.sizes[dim] = 0;
  for (const ops::Tensor<T>& part : parts) y.sizes[dim] += part.sizes[dim];
  const std::int64_t outers = Around(y.sizes, dim).outer;
  for (std::int64_t outer = 0; outer < outers; ++outer)
    for (const ops::Tensor<T>& part : parts) {
      const Around from(part.sizes, dim);
      const T* run = part.data.data() + outer * from.size * from.inner;
      y.data.insert(y.data.end(), run, run + from.size * from.inner);
    }
  return y;
}

template <class T>
ops::Tensor<T> reduced(std::span<const ops::Tensor<T>> parts, ReduceKind kind,
                       const ops::Numbers<T>& numbers) {
  ops::Tensor<T> y = parts[0];
  for (const ops::Tensor<T>& part : parts.subspan(1))
    for (std::size_t i = 0; i < y.data.size(); ++i)
      y.data[i] = kind == ReduceKind::max   ? numbers.max(y.data[i], part.data[i])
                  : kind == ReduceKind::min ? numbers.min(y.data[i], part.data[i])
                                            : y.data[i] + part.data[i];
  if (kind == ReduceKind::mean)
    for (T& element : y.data)
      element = numbers.divide(element, numbers.from_integer(static_cast<std::int64_t>(parts.size())));
  return y;
}

// The groups of ranks that communicate: those of the operation, or one group of all ranks.
Result<std::vector<std::vector<std::int32_t>>> groups_of(const Operation& operation, std::size_t ranks) {
  if (operation.details.groups.empty()) {
    std::vector<std::int32_t> all(ranks);
    for (std::size_t r = 0; r < ranks; ++r) all[r] = static_cast<std::int32_t>(r);
    return std::vector<std::vector<std::int32_t>>{all};
  }
  std::vector<bool> seen(ranks, false);
  std::size_t count = 0;
  for (const auto& group : operation.details.groups)
    for (const std::int32_t rank : group) {
      if (rank < 0 || static_cast<std::size_t>(rank) >= ranks || seen[static_cast<std::size_t>(rank)])
        return user_error(fmt::format("{}: groups must name each of {} ranks once, found {}",
                                      name(operation.verb), ranks, rank));
      seen[static_cast<std::size_t>(rank)] = true;
      ++count;
    }
  if (count != ranks)
    return user_error(fmt::format("{}: groups must name each of {} ranks once, found {} of them",
                                  name(operation.verb), ranks, count));
  return operation.details.groups;
}

class MeshTyping {
 public:
  MeshTyping(const Operation& operation, std::span<const Shape> operands)
      : operation_(operation), details_(operation.details), operands_(operands) {}

  // The result shape of the member at `place` in a group.
  Result<Shape> of(std::span<const std::int32_t> group, std::size_t place) {
    const auto held = [&](std::size_t k) -> const Shape& {
      return operands_[static_cast<std::size_t>(group[k])];
    };
    const auto members = static_cast<std::int32_t>(group.size());
    const auto own = static_cast<std::int32_t>(place);
    Shape shape = held(place);
    switch (operation_.verb) {
      case Verb::all_reduce:
      case Verb::reduce_scatter: {
        for (std::size_t k = 0; k < group.size(); ++k)
          if (held(k).sizes != shape.sizes) return wrong("all ranks must have the same sizes");
        if (operation_.verb == Verb::reduce_scatter) return sliced(shape, details_.axis, own, members);
        for (std::size_t k = 0; k < group.size(); ++k) forget_joints(shape, held(k));
        return shape;
      }
      case Verb::shard: return sliced(shape, details_.axis, own, members);
      case Verb::all_gather: {
        WEFT_TRY(joined, gathered(shape, details_.axis));
        for (std::size_t k = 0; k < group.size(); ++k)
          WEFT_TRY_STATUS(add_to(joined, held(k), details_.axis));
        return joined;
      }
      case Verb::all_to_all: {
        if (details_.axis == details_.other_axis) return wrong("split and concat must be two dims");
        WEFT_TRY(joined, gathered(shape, details_.other_axis));
        WEFT_TRY(first, sliced(held(0), details_.axis, own, members));
        joined.sizes[static_cast<std::size_t>(details_.axis)] =
            first.sizes[static_cast<std::size_t>(details_.axis)];
        joined.joints[static_cast<std::size_t>(details_.axis)].clear();
        for (std::size_t k = 0; k < group.size(); ++k) {
          WEFT_TRY(piece, sliced(held(k), details_.axis, own, members));
          WEFT_TRY_STATUS(add_to(joined, piece, details_.other_axis));
        }
        return joined;
      }
      case Verb::broadcast:
        if (details_.root < 0 || static_cast<std::size_t>(details_.root) >= group.size())
          return wrong(fmt::format("root {} is not among {} ranks", details_.root, group.size()));
        return held(static_cast<std::size_t>(details_.root));
      case Verb::permute: return held(source_of(place, group.size(), details_.shift));
      default: return wrong("is not an operation between ranks");
    }
  }

  static std::size_t source_of(std::size_t place, std::size_t members, std::int32_t shift) {
    const auto count = static_cast<std::int64_t>(members);
    return static_cast<std::size_t>(((static_cast<std::int64_t>(place) - shift) % count + count) % count);
  }

 private:
  Error wrong(std::string_view what) const {
    return user_error(fmt::format("{}: {}", name(operation_.verb), what));
  }

  static void forget_joints(Shape& shape, const Shape& other) {
    for (std::size_t d = 0; d < shape.rank(); ++d)
      if (shape.joints[d] != other.joints[d]) shape.joints[d].clear();
  }

  Result<Shape> sliced(Shape shape, std::int32_t dim, std::int32_t rank, std::int32_t ranks) {
    if (dim < 0 || static_cast<std::size_t>(dim) >= shape.rank())
      return wrong(fmt::format("dim {} is not among {}", dim, shape.rank()));
    const auto along = static_cast<std::size_t>(dim);
    const SliceOf slice = slice_of(shape.sizes[along], rank, ranks);
    if (slice.end == slice.begin)
      return wrong(
          fmt::format("a size of {} leaves a rank of {} without elements", shape.sizes[along], ranks));
    shape.sizes[along] = slice.end - slice.begin;
    shape.joints[along].clear();
    return shape;
  }

  // The shape with size 0 along `dim`.
  Result<Shape> gathered(Shape shape, std::int32_t dim) {
    if (dim < 0 || static_cast<std::size_t>(dim) >= shape.rank())
      return wrong(fmt::format("dim {} is not among {}", dim, shape.rank()));
    shape.sizes[static_cast<std::size_t>(dim)] = 0;
    shape.joints[static_cast<std::size_t>(dim)].clear();
    return shape;
  }

  Status add_to(Shape& joined, const Shape& part, std::int32_t dim) {
    if (part.rank() != joined.rank()) return wrong("all ranks must have the same rank");
    for (std::size_t d = 0; d < joined.rank(); ++d) {
      if (d == static_cast<std::size_t>(dim)) {
        joined.sizes[d] += part.sizes[d];
        continue;
      }
      if (joined.sizes[d] != part.sizes[d]) return wrong("ranks may differ only along the gathered dim");
      if (joined.joints[d] != part.joints[d]) joined.joints[d].clear();
    }
    return {};
  }

  const Operation& operation_;
  const Details& details_;
  std::span<const Shape> operands_;
};

}  // namespace

bool is_communication(Verb verb) {
  switch (verb) {
    case Verb::all_reduce:
    case Verb::reduce_scatter:
    case Verb::all_gather:
    case Verb::all_to_all:
    case Verb::broadcast:
    case Verb::permute:
    case Verb::shard: return true;
    default: return false;
  }
}

SliceOf slice_of(std::int64_t size, std::int32_t rank, std::int32_t ranks) {
  return {size * rank / ranks, size * (rank + 1) / ranks};
}

Result<std::vector<Shape>> infer_ranks(const Operation& operation, std::span<const Shape> operands) {
  WEFT_TRY(groups, groups_of(operation, operands.size()));
  std::vector<Shape> results(operands.size());
  MeshTyping typing(operation, operands);
  for (const auto& group : groups)
    for (std::size_t place = 0; place < group.size(); ++place) {
      WEFT_TRY(shape, typing.of(group, place));
      if (elements_of(shape) > kMaxRuleElements)
        return user_error(fmt::format("{}: a value is too large to judge a rule on", name(operation.verb)));
      results[static_cast<std::size_t>(group[place])] = std::move(shape);
    }
  return results;
}

template <class T>
Result<std::vector<ops::Tensor<T>>> communicate(const Operation& operation,
                                                std::span<const ops::Tensor<T>> operands,
                                                const ops::Numbers<T>& numbers) {
  std::vector<Shape> shapes;
  for (const ops::Tensor<T>& tensor : operands) shapes.push_back(shape_of(tensor.sizes));
  WEFT_TRY_STATUS(infer_ranks(operation, shapes));
  WEFT_TRY(groups, groups_of(operation, operands.size()));

  const Details& d = operation.details;
  const auto axis = static_cast<std::size_t>(d.axis);
  std::vector<ops::Tensor<T>> results(operands.size());
  for (const auto& group : groups) {
    std::vector<ops::Tensor<T>> held;
    for (const std::int32_t rank : group) held.push_back(operands[static_cast<std::size_t>(rank)]);
    const auto members = static_cast<std::int32_t>(group.size());
    const auto slice = [&](const ops::Tensor<T>& x, std::size_t place) {
      return cut(x, axis, slice_of(x.sizes[axis], static_cast<std::int32_t>(place), members));
    };
    ops::Tensor<T> shared;
    if (operation.verb == Verb::all_reduce || operation.verb == Verb::reduce_scatter)
      shared = reduced<T>(held, d.kind, numbers);
    if (operation.verb == Verb::all_gather) shared = join<T>(held, axis);
    for (std::size_t place = 0; place < group.size(); ++place) {
      ops::Tensor<T>& result = results[static_cast<std::size_t>(group[place])];
      switch (operation.verb) {
        case Verb::all_reduce:
        case Verb::all_gather: result = shared; break;
        case Verb::reduce_scatter: result = slice(shared, place); break;
        case Verb::shard: result = slice(held[place], place); break;
        case Verb::all_to_all: {
          std::vector<ops::Tensor<T>> pieces;
          for (const ops::Tensor<T>& from : held) pieces.push_back(slice(from, place));
          result = join<T>(pieces, static_cast<std::size_t>(d.other_axis));
          break;
        }
        case Verb::broadcast: result = held[static_cast<std::size_t>(d.root)]; break;
        default: result = held[MeshTyping::source_of(place, group.size(), d.shift)]; break;
      }
    }
  }
  return results;
}

template Result<std::vector<ops::Tensor<ops::Field>>> communicate(const Operation&,
                                                                  std::span<const ops::Tensor<ops::Field>>,
                                                                  const ops::Numbers<ops::Field>&);
template Result<std::vector<ops::Tensor<ops::Rounded>>> communicate(
    const Operation&, std::span<const ops::Tensor<ops::Rounded>>, const ops::Numbers<ops::Rounded>&);
template Result<std::vector<ops::Tensor<double>>> communicate(const Operation&,
                                                              std::span<const ops::Tensor<double>>,
                                                              const ops::Numbers<double>&);

}  // namespace weft::equation
