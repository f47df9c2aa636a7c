// weft/rules/equation/fingerprint_table.h -- finds terms with equal fingerprints in bounded memory.
//
//   pass 1 keeps fingerprints = 0 mod 4:   .. 8f40 ewadd(7, 9) .. 8f40 smul(31, 2) ..    a run of two
//   pass 2 keeps those = 1 mod 4, ..
//
// Terms of the current level are entered one by one. When the table is full, half of the
// fingerprints are deferred to a later pass over the same terms. So memory stays bounded and only
// time grows.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/rules/equation/term.h"

namespace weft::equation {

class FingerprintTable {
 public:
  // A term that is not stored; or if `head` is kStored, the stored term operands[0].
  struct Entry {
    std::uint64_t fingerprint = 0;
    std::uint16_t head = 0;
    std::array<TermId, 2> operands = {kNoTerm, kNoTerm};
  };
  static constexpr std::uint16_t kStored = 0xffff;

  // Entries with one fingerprint, at least one of them not stored: candidates for equality.
  struct Run {
    std::size_t begin, count;
    std::uint64_t order, inputs;
  };

  void start_level() { part_ = 0, parts_ = 1; }
  bool has_next_part() const { return part_ + 1 < parts_; }
  void next_part() { ++part_; }
  std::int32_t part() const { return part_; }
  std::int32_t parts() const { return parts_; }

  // Call before each pass. `most_bytes` bounds the table; if negative, nothing is deferred.
  void clear(std::int64_t most_bytes);
  void enter(const Entry& entry);
  bool wants(std::uint64_t fingerprint) const;

  // Small rules first; of equal size those with more inputs, which are more general; then in the
  // order of the operator set's inputs.
  std::vector<Run> runs(const TermTable& terms);
  std::span<const Entry> entries(const Run& run) const { return {entries_.data() + run.begin, run.count}; }

  std::int64_t bytes() const { return static_cast<std::int64_t>(entries_.capacity() * sizeof(Entry)); }

 private:
  Run run_of(const TermTable& terms, std::size_t begin, std::size_t end) const;

  std::vector<Entry> entries_;
  std::size_t most_entries_ = 0;
  std::int32_t part_ = 0, parts_ = 1;
};

}  // namespace weft::equation
