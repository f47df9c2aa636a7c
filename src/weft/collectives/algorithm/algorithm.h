// weft/collectives/algorithm/algorithm.h -- a collective algorithm as text, for any rank count.
//
//   ALGORITHM all_gather_ring (ranks, chunks = 1)
//     COLLECTIVE all_gather (chunks => chunks) IN PLACE
//     STEPS ranks - 1
//     WIRE (ranks - 1) * chunks
//   BEGIN
//     FOR step IN 1 TO ranks - 1
//       FOR rank IN 0 TO ranks - 1
//         LET block = (rank - step + 1) MOD ranks
//         COPY data[block * chunks] AT rank TO data[block * chunks] AT (rank + 1) MOD ranks COUNT chunks
//       END
//     END
//   END
//
// trace() runs an algorithm with given parameters and records every move. `data` is the memory that
// input and output share when in place. STEPS and WIRE are the algorithm's claims about its own
// cost (see claims.h). Numbers are 64-bit integers; overflow is an error. MOD is never negative.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weft/base/embedded.h"
#include "weft/base/result.h"
#include "weft/collectives/chunks/check_moves.h"
#include "weft/collectives/chunks/moves.h"

namespace weft::collective {

struct AlgorithmSyntax;  // algorithm_syntax.h

enum class ParameterType : std::uint8_t { number, word, list };

// A parsed algorithm. Cheap to copy: copies share the syntax.
class Algorithm {
 public:
  struct Parameter {
    std::string name;
    ParameterType type = ParameterType::number;
    bool has_default = false;
  };

  explicit Algorithm(std::shared_ptr<const AlgorithmSyntax> syntax) : syntax_(std::move(syntax)) {}

  const std::string& name() const;
  Kind kind() const;
  bool in_place() const;
  std::span<const Parameter> parameters() const;  // the first is `ranks`
  const std::string& text() const;
  const AlgorithmSyntax& syntax() const { return *syntax_; }

 private:
  std::shared_ptr<const AlgorithmSyntax> syntax_;
};

// A number, a word ('ring') or a list of numbers.
using Argument = std::variant<std::int64_t, std::string, std::vector<std::int64_t>>;
using Arguments = std::map<std::string, Argument, std::less<>>;

// Algorithms by name; CALL looks its callees up here.
class AlgorithmLibrary {
 public:
  // Replaces an algorithm of the same name.
  void add(Algorithm algorithm);

  const Algorithm* find(std::string_view name) const;  // null if not found
  std::vector<std::string_view> names() const;         // sorted

 private:
  std::map<std::string, Algorithm, std::less<>> algorithms_;
};

// Each file is named after its algorithm: algorithms/all_gather_ring.algorithm.
Result<AlgorithmLibrary> parse_library(std::span<const EmbeddedFile> files);

Result<Algorithm> parse_algorithm(std::string_view text);

// The text in its canonical form, without comments; parse_algorithm() reads it back.
std::string print(const Algorithm& algorithm);

// Limits beyond which a trace is rejected.
struct TraceLimits {
  std::int64_t moves = kMostMoves;
  std::int64_t moved_chunks = kMostMovedChunks;    // over all moves
  std::int64_t memory_chunks = kMostMemoryChunks;  // over all ranks
  std::int64_t work = std::int64_t{1} << 27;       // operations evaluated and statements executed: 0.7 s
};

// Runs the algorithm. An error that points into an algorithm's text carries that text
// (Error::text).
Result<Moves> trace(const Algorithm& algorithm, const Arguments& arguments, const AlgorithmLibrary& library,
                    const TraceLimits& limits = {});

// Checks that the parameters exist, have values and satisfy WHERE. Much cheaper than trace().
Status check_arguments(const Algorithm& algorithm, const Arguments& arguments);

}  // namespace weft::collective
