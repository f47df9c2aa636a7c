#include "weft/predict/cost/sqlite.h"

#include <fmt/format.h>

#ifdef WEFT_HAS_SQLITE
#include <sqlite3.h>
#endif

namespace weft::cost {

#ifdef WEFT_HAS_SQLITE
namespace {

constexpr int kPatienceMilliseconds = 5000;

Error database_error(sqlite3* handle) {
  const char* file = handle != nullptr ? sqlite3_db_filename(handle, nullptr) : nullptr;
  const std::string path = file != nullptr ? file : "";
  const char* what = handle != nullptr ? sqlite3_errmsg(handle) : "no memory";
  switch (handle != nullptr ? sqlite3_errcode(handle) & 0xff : SQLITE_NOMEM) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      return environment_error(fmt::format("the database is damaged, or not a SQLite database: {}", path),
                               "move it away: the next measurement creates a new one");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return environment_error(fmt::format("another process has locked the database for {} s: {}",
                                           kPatienceMilliseconds / 1000, path),
                               "try again when that process has finished");
    default: return environment_error(fmt::format("the database cannot be used: {}: {}", path, what));
  }
}

}  // namespace

void Query::Finish::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
void Database::Close::operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }

void Query::bind(int parameter, std::int64_t value) {
  WEFT_CHECK(sqlite3_bind_int64(statement_.get(), parameter, value) == SQLITE_OK);
}

void Query::bind(int parameter, double value) {
  WEFT_CHECK(sqlite3_bind_double(statement_.get(), parameter, value) == SQLITE_OK);
}

void Query::bind(int parameter, std::string_view value) {
  WEFT_CHECK(value.size() <= kLongestText);
  const int size = static_cast<int>(value.size());
  WEFT_CHECK(sqlite3_bind_text(statement_.get(), parameter, value.data(), size, SQLITE_TRANSIENT) ==
             SQLITE_OK);
}

Result<bool> Query::step() {
  const int result = sqlite3_step(statement_.get());
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) return false;
  return database_error(sqlite3_db_handle(statement_.get()));
}

Status Query::run() {
  for (;;) {
    WEFT_TRY(row, step());
    if (row) continue;
    sqlite3_reset(statement_.get());
    return {};
  }
}

std::int64_t Query::integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
double Query::real(int column) const { return sqlite3_column_double(statement_.get(), column); }

std::string Query::text(int column) const {
  const unsigned char* text = sqlite3_column_text(statement_.get(), column);
  if (text == nullptr) return {};
  return {reinterpret_cast<const char*>(text),
          static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

Result<Database> Database::open(const std::string& path, Access access) {
  Database database;
  sqlite3* handle = nullptr;
  const int flags =
      access == Access::write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  const int result = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
  database.handle_.reset(handle);  // set even if opening failed
  if (result != SQLITE_OK) {
    return environment_error(fmt::format("cannot open the database {}: {}", path, sqlite3_errstr(result)));
  }
  sqlite3_busy_timeout(handle, kPatienceMilliseconds);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, static_cast<int>(kLongestText));
  WEFT_TRY_STATUS(database.execute("PRAGMA cell_size_check = ON"));
  WEFT_TRY_STATUS(database.execute("PRAGMA synchronous = NORMAL"));
  return database;
}

Result<Query> Database::prepare(std::string_view sql) {
  Query query;
  sqlite3_stmt* statement = nullptr;
  const int result =
      sqlite3_prepare_v2(handle_.get(), sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  query.statement_.reset(statement);
  if (result != SQLITE_OK) return database_error(handle_.get());
  return query;
}

Status Database::execute(std::string_view sql) {
  WEFT_TRY(query, prepare(sql));
  return query.run();
}

Result<std::int64_t> Database::integer(std::string_view sql) {
  WEFT_TRY(query, prepare(sql));
  WEFT_TRY(row, query.step());
  return row ? query.integer(0) : 0;
}

#else  // open() fails, so nothing else is ever called

void Query::Finish::operator()(sqlite3_stmt*) const {}
void Database::Close::operator()(sqlite3*) const {}
void Query::bind(int, std::int64_t) {}
void Query::bind(int, double) {}
void Query::bind(int, std::string_view) {}
Result<bool> Query::step() { return false; }
Status Query::run() { return {}; }
std::int64_t Query::integer(int) const { return 0; }
double Query::real(int) const { return 0; }
std::string Query::text(int) const { return {}; }

Result<Database> Database::open(const std::string& path, Access) {
  return environment_error(fmt::format("this weft was built without SQLite and cannot open {}", path),
                           "install libsqlite3-dev and build again");
}

Result<Query> Database::prepare(std::string_view) { return Query(); }
Status Database::execute(std::string_view) { return {}; }
Result<std::int64_t> Database::integer(std::string_view) { return 0; }

#endif

}  // namespace weft::cost
