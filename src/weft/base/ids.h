// weft/base/ids.h -- strongly typed integer ids.
//
//   struct NodeTag;  using NodeId = Id<NodeTag>;
//
// An id is an index into the arena that created it. The default id is invalid.
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

namespace weft {

template <class Tag>
struct Id {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  std::uint32_t value = kNone;

  constexpr Id() = default;
  constexpr explicit Id(std::size_t position) : value(static_cast<std::uint32_t>(position)) {}

  constexpr bool valid() const { return value != kNone; }
  constexpr explicit operator bool() const { return valid(); }
  friend constexpr auto operator<=>(const Id&, const Id&) = default;
};

}  // namespace weft

template <class Tag>
struct std::hash<weft::Id<Tag>> {
  std::size_t operator()(weft::Id<Tag> id) const noexcept {
    return static_cast<std::size_t>(id.value) * 0x9e3779b97f4a7c15u;
  }
};
