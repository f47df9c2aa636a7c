// weft/predict/cost/statistics.h -- the statistics database: measured times, kept between runs.
//
//   ~/.local/share/weft/statistics.sqlite
//
//   collective_time   how long a collective took: setting, algorithm, bytes -> seconds     (weft tune)
//   link              latency and bandwidth from one rank to another                       (weft profile)
//   operator_time     how long a unit of a program took: its kernel and shape -> seconds   (EXPLAIN ANALYZE)
//   rate              rates of one machine per second: copy, reduce, multiply              (weft profile)
//
// Every row records the kind of machine (machine_identity.h) and the time of the measurement; a
// later measurement replaces an earlier one of the same thing. Reads return the rows of one
// machine.
//
// Any number of processes may share the file: writers are serialized, and a killed writer leaves
// the file unchanged. A file that is damaged, or written by another program or a newer Weft, is
// refused and left untouched. So is a file that another user may have written, or whose folder
// others can write to (base/private_folder.h), because its contents influence plans. A build
// without SQLite has no database: open() fails, and callers continue without measurements.
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
  std::int64_t measured_at = 0;  // seconds since 1970-01-01, UTC

  friend bool operator==(const CollectiveTime&, const CollectiveTime&) = default;
};

struct LinkTime {
  std::string transport;
  std::int32_t ranks = 2;
  std::int32_t from = 0, to = 1;
  bool together = false;  // while all other ranks were sending as well
  double latency_seconds = 0;
  double bytes_per_second = 0;
  std::int64_t measured_at = 0;

  friend bool operator==(const LinkTime&, const LinkTime&) = default;
};

struct Rate {
  std::string what;          // "copy", "reduce f32", "multiply f32", "reached product"
  std::int32_t threads = 1;  // that ran it at the same time
  std::int64_t bytes = 0;    // of each thread's buffers
  double per_second = 0;  // bytes or operations of all threads; for "reached", the fraction of the roofline
  std::int64_t measured_at = 0;

  friend bool operator==(const Rate&, const Rate&) = default;
};

// The total time of a unit's tasks on one worker.
struct OperatorTime {
  std::string unit;  // unit_key() of operator_time.h
  double seconds = 0;
  std::int64_t measured_at = 0;

  friend bool operator==(const OperatorTime&, const OperatorTime&) = default;
};

// A readable date: "2026-11-15".
std::string print_date(std::int64_t seconds_since_1970);
std::int64_t seconds_since_1970();

class Statistics {
 public:
  // The path of the user's database: $XDG_DATA_HOME/weft or ~/.local/share/weft; empty if the
  // environment sets neither.
  static std::string default_path();

  // Fails if the file or its folder exists and is not private to this user; open() then fails as
  // well.
  static Status check(const std::string& path);

  // An empty `path` means the user's database. With write access, a missing file and folder are
  // created; with read access, a missing file is an empty database. ":memory:" has no file. An
  // empty `machine` means this one.
  static Result<Statistics> open(std::string path, Access access, std::string machine = {});
  ~Statistics();
  Statistics(Statistics&&) noexcept;
  Statistics& operator=(Statistics&&) noexcept;

  const std::string& path() const;
  const std::string& machine() const;

  // Inserts all rows or none. Rejects rows that could not be read back: an empty name, or a time
  // that is not positive and finite.
  Status add(std::span<const CollectiveTime> times);
  Status add(std::span<const LinkTime> links);
  Status add(std::span<const OperatorTime> times);
  Status add(std::span<const Rate> rates);

  // Rows of this machine, ordered by setting, algorithm and size. Invalid rows are skipped.
  Result<std::vector<CollectiveTime>> collective_times() const;
  Result<std::vector<LinkTime>> links() const;
  Result<std::vector<OperatorTime>> operator_times() const;
  Result<std::vector<Rate>> rates() const;

  Result<std::int64_t> rows() const;  // of this machine, in all tables
  Result<std::int64_t> clear();       // deletes them; returns their number

  struct State;

 private:
  explicit Statistics(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace weft::cost
