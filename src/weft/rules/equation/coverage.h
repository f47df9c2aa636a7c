// weft/rules/equation/coverage.h -- whether generated rules cover given equations.
//
//   smul(matmul(i1, i4), i20) = matmul(i1, smul(i4, i20))               as it is
//   relu(concat(i1, i1)) = concat(relu(i1), relu(i1))                   an instance of a more general one
//   matmul(matmul(i1, i4), smul(i5, i20)) = matmul(smul(i1, i20), ..)   follows from several
//
// `under_guard`: the rules used hold under guards, so the equation holds where those guards do.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weft/base/hash.h"
#include "weft/rules/equation/follows.h"
#include "weft/rules/equation/generate.h"

namespace weft::equation {

enum class Coverage : std::uint8_t { as_it_is, more_general, follows, missing };

std::string_view name(Coverage coverage);

struct Covered {
  Coverage how = Coverage::missing;
  bool under_guard = false;
  std::vector<std::size_t> by;  // rule numbers
};

class CoverageBy {
 public:
  explicit CoverageBy(const std::vector<GeneratedRule>& rules);

  Covered cover(const Equation& equation) const;

 private:
  std::unordered_map<Digest, std::size_t> by_key_;
  Theory proven_, all_;
};

}  // namespace weft::equation
