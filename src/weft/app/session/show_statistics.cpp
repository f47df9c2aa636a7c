// SHOW STATISTICS, CLEAR STATISTICS: lists and deletes measurements of this machine.
#include "weft/app/session/show_statistics.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/base/letters.h"
#include "weft/base/units.h"
#include "weft/predict/cost/statistics.h"

namespace weft::session {
namespace {

using explain::Align;

struct Measured {
  std::int64_t rows = 0, first = 0, last = 0;
};

template <class Row>
Measured measured(const Result<std::vector<Row>>& rows) {
  Measured made;
  if (!rows.ok() || rows->empty()) return made;
  const auto [first, last] = std::ranges::minmax(*rows, {}, &Row::measured_at);
  return {static_cast<std::int64_t>(rows->size()), first.measured_at, last.measured_at};
}

}  // namespace

explain::Listing show_statistics(const Session::State& state) {
  explain::Listing listing({"statistics", "rows", "first", "last", "measured_by"},
                           {{"statistics"}, {"rows", Align::right}, {"first"}, {"last"}, {"measured by"}});
  const auto opened = cost::Statistics::open({}, cost::Access::read);
  if (!opened.ok()) {
    state.warnings.add("statistics are not read", opened.error());
    return listing;
  }
  const auto add = [&](std::string what, const Measured& found, std::string by) {
    if (found.rows > 0)
      listing.add({std::move(what), print_exact(found.rows), cost::print_date(found.first),
                   cost::print_date(found.last), std::move(by)});
  };
  add("times of collectives", measured(opened->collective_times()), "weft tune, EXPLAIN ANALYZE");
  add("links", measured(opened->links()), "weft profile");
  add("times of operators", measured(opened->operator_times()), "EXPLAIN ANALYZE");
  add("rates", measured(opened->rates()), "weft profile, EXPLAIN ANALYZE");
  return listing;
}

Answer run_clear(const Session::State&, const Context& context, const language::syntax::Clear& clear) {
  if (!same_word(clear.what.text, "STATISTICS"))
    return user_error(fmt::format("cannot clear '{}'", clear.what.text), "CLEAR supports only STATISTICS",
                      clear.what.span);
  std::int64_t rows = 0;
  // A database that does not exist is already empty.
  WEFT_TRY(there, cost::Statistics::open({}, cost::Access::read));
  WEFT_TRY(count, there.rows());
  if (count > 0) {
    WEFT_TRY(statistics, cost::Statistics::open({}, cost::Access::write));
    WEFT_TRY(cleared, statistics.clear());
    rows = cleared;
  }
  if (context.format == Format::json)
    return nlohmann::ordered_json{{"cleared", "statistics"}, {"rows", rows}}.dump() + "\n";
  return fmt::format("cleared statistics: {} row{} of this machine\n", print_exact(rows),
                     rows == 1 ? "" : "s");
}

}  // namespace weft::session
