// A report as text: lines, the other plans, what is sure, and the sections that were asked for.
#include <fmt/format.h>

#include "weft/app/explain/predicted_step.h"
#include "weft/app/explain/report.h"
#include "weft/base/units.h"

namespace weft::explain {
namespace {

// What a plan pays besides computing; empty where that is little.
std::string main_cost(const Candidate& plan) {
  constexpr double kLeast = 0.05;
  const bool bubble = plan.bubble > plan.exposed;
  const double part = (bubble ? plan.bubble : plan.exposed) / plan.seconds;
  return part < kLeast
             ? std::string()
             : fmt::format("{} {}", bubble ? "bubble" : "exposed communication", rounded_percent(part));
}

// The best of each family; one that is the chosen plan is left out.
std::string print_others(const Report& report) {
  Section section{"",
                  {{"Others", Align::left, Fit::cut},
                   {"step", Align::right},
                   {"", Align::right},
                   {"memory", Align::right},
                   {"", Align::left, Fit::cut, 1}}};
  const double chosen = step_of(report).seconds;
  for (const Candidate& other : alternatives_of(report)) {
    if (*other.distribution == *report.distribution()) continue;
    section.rows.push_back({fmt::format("{}: {}", other.name, terms_of(report, *other.distribution)),
                            print_seconds(other.seconds), fmt::format("{:.2f}x", other.seconds / chosen),
                            print_bytes(other.bytes), other.fits ? main_cost(other) : "does not fit"});
  }
  return section.empty() ? std::string() : print(section, report.width) + "\n";
}

}  // namespace

std::string print_text(const Report& report) {
  std::string text = wrap(headline(report), report.width) + "\n";
  text += print_lines(report, /*after=*/false) + "\n";
  text += print_others(report);
  text += print_lines(report, /*after=*/true);
  for (const Section& section : sections_of(report))
    if (report.verbose || report.sections.contains(section.option))
      text += "\n" + print(section, report.width);
  return text;
}

}  // namespace weft::explain
