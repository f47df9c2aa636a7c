// weft/predict/cost/statistics.h -- the statistics database: what was measured, kept from one run to the next.
//
//   ~/.local/share/weft/statistics.sqlite
//
//   collective_time   how long a collective took: setting, algorithm, bytes -> seconds     (weft tune)
//   link              latency and bandwidth from one rank to another                       (weft profile)
//   operator_time     how long a unit of a program took: its kernel and shape -> seconds   (EXPLAIN ANALYZE)
//   rate              what one machine does a second: copy, reduce, multiply               (weft profile)
//
// Every row says on which kind of machine it was measured (machine_identity.h) and when; a later measurement
// replaces an earlier one of the same thing. Reads answer for one machine. Any number of processes may share
// the file: a writer waits for its turn, and a killed one leaves the file as it was. A file of another
// program, of a newer Weft, or a damaged one is refused and left untouched. So is one that another user may
// have written, or whose folder others may write to (base/private_folder.h): what it says chooses plans. A
// build without SQLite has no database: open() says so, and callers go on with what they know by themselves.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/collective.h"
#include "weft/predict/cost/sqlite.h"

namespace weft::cost {

struct CollectiveTime {
  collective::Kind kind = collective::Kind::all_reduce;
  std::int32_t ranks = 1, hosts = 1;
  std::string transport;   // "shm"
  bool allocated = false;  // buffers that all ranks can reach
  std::string algorithm;   // "direct one-shot", "all_reduce_ring(channels=2)"
  std::int64_t bytes = 0;
  double seconds = 0;
  std::int64_t measured_at = 0;  // seconds since 1970, UTC

  friend bool operator==(const CollectiveTime&, const CollectiveTime&) = default;
};

struct LinkTime {
  std::string transport;
  std::int32_t ranks = 2;
  std::int32_t from = 0, to = 1;
  bool together = false;  // while all others were sending as well
  double latency_seconds = 0;
  double bytes_per_second = 0;
  std::int64_t measured_at = 0;

  friend bool operator==(const LinkTime&, const LinkTime&) = default;
};

struct Rate {
  std::string what;          // "copy", "reduce f32", "multiply f32", "reached product"
  std::int32_t threads = 1;  // that did it at the same time
  std::int64_t bytes = 0;    // of the buffers that each of them worked on
  double per_second = 0;  // bytes or operations, all threads together; of "reached", the part of the roofline
  std::int64_t measured_at = 0;

  friend bool operator==(const Rate&, const Rate&) = default;
};

// All tasks of a unit together, on one worker.
struct OperatorTime {
  std::string unit;  // unit_key() of operator_time.h
  double seconds = 0;
  std::int64_t measured_at = 0;

  friend bool operator==(const OperatorTime&, const OperatorTime&) = default;
};

// A date for people: "2026-11-15".
std::string print_date(std::int64_t seconds_since_1970);
std::int64_t seconds_since_1970();

class Statistics {
 public:
  // Where the user's own database is: $XDG_DATA_HOME/weft or ~/.local/share/weft; empty when the
  // environment names neither.
  static std::string default_path();

  // Fails where the file or its folder is there and not private to this user; open() then fails as well.
  static Status check(const std::string& path);

  // `path` empty: the user's own. To write, the file and its folder are made where they are missing; to
  // read, a missing file is an empty database. ":memory:" has no file. `machine` empty: this one.
  static Result<Statistics> open(std::string path, Access access, std::string machine = {});
  ~Statistics();
  Statistics(Statistics&&) noexcept;
  Statistics& operator=(Statistics&&) noexcept;

  const std::string& path() const;
  const std::string& machine() const;

  // All rows or none. Refuses what could not be read back: no name, no positive finite time.
  Status add(std::span<const CollectiveTime> times);
  Status add(std::span<const LinkTime> links);
  Status add(std::span<const OperatorTime> times);
  Status add(std::span<const Rate> rates);

  // Of this machine, in a fixed order: by setting, algorithm and size. Rows that make no sense are left out.
  Result<std::vector<CollectiveTime>> collective_times() const;
  Result<std::vector<LinkTime>> links() const;
  Result<std::vector<OperatorTime>> operator_times() const;
  Result<std::vector<Rate>> rates() const;

  Result<std::int64_t> rows() const;  // of this machine, in all tables
  Result<std::int64_t> clear();       // forgets them; how many there were

  struct State;

 private:
  explicit Statistics(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace weft::cost
