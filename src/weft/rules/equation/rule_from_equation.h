// weft/rules/equation/rule_from_equation.h -- a positional equation as a rule with index names.
//
//   concat{0}(matmul(i1, i4), matmul(i2, i4)) = matmul(concat{0}(i1, i2), i4)
//
//   given i1[a, B], i2[a, B], i4[B, C]
//   left  l0 = contract(i1, i4, to=[a, C])
//         l1 = contract(i2, i4, to=[a, C])
//         p = concat(l0, l1, along=a)
//   right r0 = concat(i1, i2, along=a)
//         p = contract(r0, i4, to=[a, C])
//
// Dims that the operations tie together become one index variable. Dims that nothing refers to
// individually become a variable for any number of indices, so the rule is more general than the
// equation: the caller must prove it. Transposes vanish: with named indices they are only a memory
// order. So an equation that consists only of transposes becomes trivial.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/rules/equation/equation.h"

namespace weft::equation {

// How to treat an input that differs from rank to rank: as addends of one value, or as a separate
// value per rank.
enum class LocalValues : std::uint8_t { partial, varying };

// The text of a rule named `name`; nullopt if the rule is trivial with named indices. Fails if
// plans have no such operation, or a value would have an index twice.
Result<std::optional<std::string>> rule_from_equation(const Equation& equation, std::string_view name,
                                                      std::string_view why, std::string_view cite,
                                                      LocalValues local = LocalValues::partial);

}  // namespace weft::equation
