// weft/predict/cost/sqlite.h -- a minimal RAII wrapper of SQLite.
//
//   WEFT_TRY(database, Database::open("figures.sqlite", Access::write));
//   WEFT_TRY(query, database.prepare("SELECT name FROM machine WHERE cores > ?"));
//   query.bind(1, 4);
//   for (;;) {
//     WEFT_TRY(row, query.step());
//     if (!row) break;
//     use(query.text(0));
//   }
//
// Files are not trusted: no functions with side effects run from their schema, and no value is
// longer than kLongestText. In a build without SQLite, open() returns an error. Not thread-safe.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "weft/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace weft::cost {

enum class Access : bool { read, write };

inline constexpr std::size_t kLongestText = 1 << 16;

class Query {
 public:
  // Parameters are numbered from 1, columns from 0.
  void bind(int parameter, std::int64_t value);
  void bind(int parameter, double value);
  void bind(int parameter, std::string_view value);

  Result<bool> step();  // false: no more rows
  Status run();         // runs to the end, drops rows, resets for the next bind

  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;

 private:
  friend class Database;
  struct Finish {
    void operator()(sqlite3_stmt* statement) const;
  };
  std::unique_ptr<sqlite3_stmt, Finish> statement_;
};

class Database {
 public:
  // With write access, a missing file is created. Waits a few seconds for other writers.
  static Result<Database> open(const std::string& path, Access access);

  Result<Query> prepare(std::string_view sql);
  Status execute(std::string_view sql);
  Result<std::int64_t> integer(
      std::string_view sql);  // the first column of the first row; 0 if there is no row

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  std::unique_ptr<sqlite3, Close> handle_;
};

}  // namespace weft::cost
