#include "weft/predict/cost/statistics.h"

#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "weft/base/private_folder.h"
#include "weft/predict/cost/machine_identity.h"

namespace weft::cost {
namespace {

constexpr std::int64_t kApplication = 0x57656674;  // "Weft"
constexpr std::int64_t kSchema = 2;                // PRAGMA user_version; a newer one is rejected
constexpr std::size_t kLongestName = 256;
constexpr std::string_view kInMemory = ":memory:";  // SQLite's name
constexpr std::int64_t kMostRows = 200'000;

struct Table {
  std::int64_t since;  // the first schema version that has it
  std::string_view sql;
};

// The file's whole schema, by table name. A file with any other table is not a Weft database. With
// write access, an older file gets the tables that it lacks.
constexpr std::array<Table, 4> kTables = {{
    {1,
     "CREATE TABLE collective_time (machine TEXT NOT NULL, kind TEXT NOT NULL, ranks INTEGER NOT NULL, "
     "hosts INTEGER NOT NULL, transport TEXT NOT NULL, allocated INTEGER NOT NULL, algorithm TEXT NOT NULL, "
     "bytes INTEGER NOT NULL, seconds REAL NOT NULL, measured_at INTEGER NOT NULL, "
     "PRIMARY KEY (machine, kind, ranks, hosts, transport, allocated, algorithm, bytes)) WITHOUT ROWID"},
    {1,
     "CREATE TABLE link (machine TEXT NOT NULL, transport TEXT NOT NULL, ranks INTEGER NOT NULL, "
     "from_rank INTEGER NOT NULL, to_rank INTEGER NOT NULL, together INTEGER NOT NULL, "
     "latency_seconds REAL NOT NULL, bytes_per_second REAL NOT NULL, measured_at INTEGER NOT NULL, "
     "PRIMARY KEY (machine, transport, ranks, from_rank, to_rank, together)) WITHOUT ROWID"},
    {2,
     "CREATE TABLE operator_time (machine TEXT NOT NULL, unit TEXT NOT NULL, seconds REAL NOT NULL, "
     "measured_at INTEGER NOT NULL, PRIMARY KEY (machine, unit)) WITHOUT ROWID"},
    {1,
     "CREATE TABLE rate (machine TEXT NOT NULL, what TEXT NOT NULL, threads INTEGER NOT NULL, "
     "bytes INTEGER NOT NULL, per_second REAL NOT NULL, measured_at INTEGER NOT NULL, "
     "PRIMARY KEY (machine, what, threads, bytes)) WITHOUT ROWID"},
}};

std::string_view name_of(const Table& table) {
  constexpr std::string_view kBefore = "CREATE TABLE ";
  return table.sql.substr(kBefore.size(), table.sql.find(' ', kBefore.size()) - kBefore.size());
}

bool is_name(std::string_view text) { return !text.empty() && text.size() <= kLongestName; }
bool is_number_of_ranks(std::int64_t ranks) {
  return ranks >= 1 && ranks <= std::numeric_limits<std::int32_t>::max();
}
bool is_positive(double number) { return std::isfinite(number) && number > 0; }

bool makes_sense(const CollectiveTime& time) {
  return is_number_of_ranks(time.ranks) && is_number_of_ranks(time.hosts) && is_name(time.transport) &&
         is_name(time.algorithm) && time.bytes >= 0 && is_positive(time.seconds);
}

bool makes_sense(const LinkTime& link) {
  return is_name(link.transport) && is_number_of_ranks(link.ranks) && link.from >= 0 && link.to >= 0 &&
         is_positive(link.latency_seconds) && is_positive(link.bytes_per_second);
}

bool makes_sense(const OperatorTime& time) { return is_name(time.unit) && is_positive(time.seconds); }

bool makes_sense(const Rate& rate) {
  return is_name(rate.what) && rate.threads >= 1 && rate.bytes >= 0 && is_positive(rate.per_second);
}

// Converts a column of the file; a number that does not fit becomes an invalid one.
std::int32_t small(std::int64_t number) {
  return number >= 0 && number <= std::numeric_limits<std::int32_t>::max() ? static_cast<std::int32_t>(number)
                                                                           : -1;
}

struct FilePlace {
  explicit FilePlace(const std::filesystem::path& path)
      : folder(path.has_parent_path() ? path.parent_path().string() : "."), file(path.filename().string()) {}
  std::string folder, file;
};

Error not_ours(const std::string& path) {
  return user_error(fmt::format("not a statistics database of weft: {}", path), "name another file");
}

// The file's schema version; 0 if it is empty. Fails if it is not a Weft database.
Result<std::int64_t> schema_of(Database& database, const std::string& path) {
  WEFT_TRY(objects, database.integer("SELECT count(*) FROM sqlite_schema"));
  WEFT_TRY(application, database.integer("PRAGMA application_id"));
  WEFT_TRY(version, database.integer("PRAGMA user_version"));
  if (objects == 0 && application == 0 && version == 0) return version;
  if (application != kApplication) return not_ours(path);
  if (version > kSchema) {
    return user_error(
        fmt::format("the statistics database was written by a newer weft: {}: its version is {}, "
                    "this weft reads up to {}",
                    path, version, kSchema),
        "use the newer weft, or another file");
  }
  if (version < 1) return not_ours(path);
  WEFT_TRY(query, database.prepare("SELECT sql FROM sqlite_schema ORDER BY name"));
  for (const Table& table : kTables) {
    if (table.since > version) continue;
    WEFT_TRY(row, query.step());
    if (!row || query.text(0) != table.sql) return not_ours(path);
  }
  WEFT_TRY(more, query.step());
  if (more) return not_ours(path);
  return version;
}

// Runs `body` as one transaction: all of it or nothing.
template <class Body>
Status change(Database& database, Body&& body) {
  WEFT_TRY_STATUS(database.execute("BEGIN IMMEDIATE"));
  Status done = body();
  if (done.ok()) done = database.execute("COMMIT");
  if (!done.ok()) (void)database.execute("ROLLBACK");  // report the first error
  return done;
}

Status make_schema(Database& database, const std::string& path) {
  return change(database, [&]() -> Status {
    WEFT_TRY(version, schema_of(database, path));  // another process may have created it first
    if (version == kSchema) return {};
    for (const Table& table : kTables)
      if (table.since > version) WEFT_TRY_STATUS(database.execute(table.sql));
    WEFT_TRY_STATUS(database.execute(fmt::format("PRAGMA application_id = {}", kApplication)));
    return database.execute(fmt::format("PRAGMA user_version = {}", kSchema));
  });
}

}  // namespace

struct Statistics::State {
  std::string path, machine;
  std::int64_t schema = kSchema;
  mutable std::optional<Database> database;  // empty: a missing file, opened for reading

  // Inserts rows; `bind` sets the parameters after the first, which is the machine.
  template <class Row, class Bind>
  Status add(std::span<const Row> rows, std::string_view sql, Bind&& bind) {
    for (const Row& row : rows) {
      if (!makes_sense(row)) return user_error("a measurement needs names and a positive, finite time");
    }
    return change(*database, [&]() -> Status {
      WEFT_TRY(query, database->prepare(sql));
      for (const Row& row : rows) {
        query.bind(1, std::string_view(machine));
        bind(query, row);
        WEFT_TRY_STATUS(query.run());
      }
      return {};
    });
  }

  template <class Row, class Read>
  Result<std::vector<Row>> read(std::string_view sql, Read&& read_row) const {
    std::vector<Row> rows;
    if (!database) return rows;
    WEFT_TRY(query, database->prepare(sql));
    query.bind(1, std::string_view(machine));
    query.bind(2, kMostRows);
    for (;;) {
      WEFT_TRY(there, query.step());
      if (!there) return rows;
      std::optional<Row> row = read_row(query);
      if (row && makes_sense(*row)) rows.push_back(std::move(*row));
    }
  }
};

std::string print_date(std::int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm date{};
  if (gmtime_r(&time, &date) == nullptr) return "an unknown day";
  return fmt::format("{:04}-{:02}-{:02}", date.tm_year + 1900, date.tm_mon + 1, date.tm_mday);
}

std::int64_t seconds_since_1970() {
  using namespace std::chrono;
  return duration_cast<seconds>(system_clock::now().time_since_epoch()).count();
}

std::string Statistics::default_path() {
  // The XDG specification requires that a relative path is ignored.
  if (const char* data = std::getenv("XDG_DATA_HOME"); data != nullptr && data[0] == '/') {
    return fmt::format("{}/weft/statistics.sqlite", data);
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] != '\0') {
    return fmt::format("{}/.local/share/weft/statistics.sqlite", home);
  }
  return {};
}

Status Statistics::check(const std::string& path) {
  const FilePlace place(path.empty() ? default_path() : path);
  if (place.file.empty()) return {};
  WEFT_TRY_STATUS(PrivateFolder::check(place.folder));
  const auto folder = PrivateFolder::open(place.folder);
  return folder.ok() ? folder->check_file(place.file) : Status();  // else there is no file
}

Result<Statistics> Statistics::open(std::string path, Access access, std::string machine) {
  if (path.empty()) path = default_path();
  if (path.empty()) {
    return user_error("no folder for the statistics database: neither XDG_DATA_HOME nor HOME is set",
                      "name a file");
  }
  auto state = std::make_unique<State>();
  state->path = path;
  state->machine = machine.empty() ? machine_identity() : std::move(machine);
  if (path == kInMemory) {
    // No file, so nothing to check.
  } else if (access == Access::read) {
    WEFT_TRY_STATUS(check(path));
    std::error_code failure;
    if (!std::filesystem::exists(path, failure)) return Statistics(std::move(state));
  } else {
    const FilePlace place(path);
    WEFT_TRY(folder, PrivateFolder::make(place.folder));
    WEFT_TRY_STATUS(folder.make_file(place.file));  // SQLite gives its journals the database's file mode
  }
  WEFT_TRY(database, Database::open(path, access));
  WEFT_TRY(version, schema_of(database, path));
  if (access == Access::write && version < kSchema) {
    WEFT_TRY_STATUS(make_schema(database, path));
    version = kSchema;
  }
  state->schema = version;
  if (version > 0) state->database = std::move(database);
  return Statistics(std::move(state));
}

Statistics::Statistics(std::unique_ptr<State> state) : state_(std::move(state)) {}
Statistics::~Statistics() = default;
Statistics::Statistics(Statistics&&) noexcept = default;
Statistics& Statistics::operator=(Statistics&&) noexcept = default;

const std::string& Statistics::path() const { return state_->path; }
const std::string& Statistics::machine() const { return state_->machine; }

Status Statistics::add(std::span<const CollectiveTime> times) {
  return state_->add(times, "INSERT OR REPLACE INTO collective_time VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                     [](Query& query, const CollectiveTime& time) {
                       query.bind(2, name(time.kind));
                       query.bind(3, std::int64_t{time.ranks});
                       query.bind(4, std::int64_t{time.hosts});
                       query.bind(5, std::string_view(time.transport));
                       query.bind(6, std::int64_t{time.allocated});
                       query.bind(7, std::string_view(time.algorithm));
                       query.bind(8, time.bytes);
                       query.bind(9, time.seconds);
                       query.bind(10, time.measured_at);
                     });
}

Status Statistics::add(std::span<const LinkTime> links) {
  return state_->add(links, "INSERT OR REPLACE INTO link VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                     [](Query& query, const LinkTime& link) {
                       query.bind(2, std::string_view(link.transport));
                       query.bind(3, std::int64_t{link.ranks});
                       query.bind(4, std::int64_t{link.from});
                       query.bind(5, std::int64_t{link.to});
                       query.bind(6, std::int64_t{link.together});
                       query.bind(7, link.latency_seconds);
                       query.bind(8, link.bytes_per_second);
                       query.bind(9, link.measured_at);
                     });
}

Status Statistics::add(std::span<const Rate> rates) {
  return state_->add(rates, "INSERT OR REPLACE INTO rate VALUES (?, ?, ?, ?, ?, ?)",
                     [](Query& query, const Rate& rate) {
                       query.bind(2, std::string_view(rate.what));
                       query.bind(3, std::int64_t{rate.threads});
                       query.bind(4, rate.bytes);
                       query.bind(5, rate.per_second);
                       query.bind(6, rate.measured_at);
                     });
}

Status Statistics::add(std::span<const OperatorTime> times) {
  return state_->add(times, "INSERT OR REPLACE INTO operator_time VALUES (?, ?, ?, ?)",
                     [](Query& query, const OperatorTime& time) {
                       query.bind(2, std::string_view(time.unit));
                       query.bind(3, time.seconds);
                       query.bind(4, time.measured_at);
                     });
}

Result<std::vector<CollectiveTime>> Statistics::collective_times() const {
  return state_->read<CollectiveTime>(
      "SELECT kind, ranks, hosts, transport, allocated, algorithm, bytes, seconds, measured_at FROM "
      "collective_time WHERE machine = ? ORDER BY kind, ranks, hosts, transport, allocated, algorithm, bytes "
      "LIMIT ?",
      [](const Query& query) -> std::optional<CollectiveTime> {
        const auto kind = collective::find_kind(query.text(0));
        if (!kind) return std::nullopt;
        return CollectiveTime{.kind = *kind,
                              .ranks = small(query.integer(1)),
                              .hosts = small(query.integer(2)),
                              .transport = query.text(3),
                              .allocated = query.integer(4) != 0,
                              .algorithm = query.text(5),
                              .bytes = query.integer(6),
                              .seconds = query.real(7),
                              .measured_at = query.integer(8)};
      });
}

Result<std::vector<LinkTime>> Statistics::links() const {
  return state_->read<LinkTime>(
      "SELECT transport, ranks, from_rank, to_rank, together, latency_seconds, bytes_per_second, measured_at "
      "FROM link WHERE machine = ? ORDER BY transport, ranks, from_rank, to_rank, together LIMIT ?",
      [](const Query& query) -> std::optional<LinkTime> {
        const std::int64_t ranks = query.integer(1);
        const auto is_rank = [&](std::int64_t rank) { return rank >= 0 && rank < ranks; };
        if (!is_rank(query.integer(2)) || !is_rank(query.integer(3))) return std::nullopt;
        return LinkTime{.transport = query.text(0),
                        .ranks = small(query.integer(1)),
                        .from = small(query.integer(2)),
                        .to = small(query.integer(3)),
                        .together = query.integer(4) != 0,
                        .latency_seconds = query.real(5),
                        .bytes_per_second = query.real(6),
                        .measured_at = query.integer(7)};
      });
}

Result<std::vector<Rate>> Statistics::rates() const {
  return state_->read<Rate>(
      "SELECT what, threads, bytes, per_second, measured_at FROM rate WHERE machine = ? "
      "ORDER BY what, threads, bytes LIMIT ?",
      [](const Query& query) -> std::optional<Rate> {
        return Rate{.what = query.text(0),
                    .threads = small(query.integer(1)),
                    .bytes = query.integer(2),
                    .per_second = query.real(3),
                    .measured_at = query.integer(4)};
      });
}

Result<std::vector<OperatorTime>> Statistics::operator_times() const {
  if (state_->schema < 2) return std::vector<OperatorTime>();
  return state_->read<OperatorTime>(
      "SELECT unit, seconds, measured_at FROM operator_time WHERE machine = ? ORDER BY unit LIMIT ?",
      [](const Query& query) -> std::optional<OperatorTime> {
        return OperatorTime{.unit = query.text(0), .seconds = query.real(1), .measured_at = query.integer(2)};
      });
}

Result<std::int64_t> Statistics::rows() const {
  std::int64_t rows = 0;
  if (!state_->database) return rows;
  for (const Table& table : kTables) {
    if (table.since > state_->schema) continue;
    WEFT_TRY(query, state_->database->prepare(
                        fmt::format("SELECT count(*) FROM {} WHERE machine = ?", name_of(table))));
    query.bind(1, std::string_view(state_->machine));
    WEFT_TRY(there, query.step());
    if (there) rows += query.integer(0);
  }
  return rows;
}

Result<std::int64_t> Statistics::clear() {
  std::int64_t rows = 0;
  WEFT_TRY_STATUS(change(*state_->database, [&]() -> Status {
    WEFT_TRY(before, this->rows());
    rows = before;
    for (const Table& table : kTables) {
      WEFT_TRY(query,
               state_->database->prepare(fmt::format("DELETE FROM {} WHERE machine = ?", name_of(table))));
      query.bind(1, std::string_view(state_->machine));
      WEFT_TRY_STATUS(query.run());
    }
    return {};
  }));
  return rows;
}

}  // namespace weft::cost
