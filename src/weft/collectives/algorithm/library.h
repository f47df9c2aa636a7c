// weft/collectives/algorithm/library.h -- the algorithms shipped with Weft, and references to them.
//
//   all_reduce_ring(ranks=8, chunks=4)
//   all_reduce_hierarchical(ranks=16, within='ring')
//   all_gather_v_ring(ranks=3, counts=[3, 1, 4])
#pragma once
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/collectives/algorithm/algorithm.h"

namespace weft::collective {

// The files of algorithms/, embedded in the program.
const AlgorithmLibrary& shipped_algorithms();

struct AlgorithmReference {
  std::string name;
  Arguments arguments;

  friend bool operator==(const AlgorithmReference&, const AlgorithmReference&) = default;
};

// Quotes around a word are optional, and so are empty parentheses.
Result<AlgorithmReference> parse_reference(std::string_view text);
std::string print(const AlgorithmReference& reference);

// The algorithm of that name, or an error that suggests a similar name.
Result<Algorithm> find_algorithm(const AlgorithmLibrary& library, std::string_view name);

}  // namespace weft::collective
