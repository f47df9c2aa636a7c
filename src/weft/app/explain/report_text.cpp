// A report as text: lines, the other plans, remaining lines, and the requested sections.
#include <fmt/format.h>

#include "weft/app/explain/predicted_step.h"
#include "weft/app/explain/report.h"
#include "weft/base/units.h"

namespace weft::explain {
namespace {

// A plan's largest cost besides computing; if that is small, its compute time.
std::string main_cost(const Candidate& plan) {
  constexpr double kLeast = 0.05;
  const bool bubble = plan.bubble > plan.exposed;
  const double part = (bubble ? plan.bubble : plan.exposed) / plan.seconds;
  if (part >= kLeast)
    return fmt::format("{} {}", bubble ? "bubble" : "exposed communication", rounded_percent(part));
  return plan.computing > 0 ? fmt::format("compute {}", print_seconds(plan.computing)) : std::string();
}

// The best plan of each family, except the chosen plan.
std::string print_others(const Report& report) {
  Section section{"",
                  {{"Others", Align::left, Fit::cut},
                   {"step", Align::right},
                   {"vs plan", Align::right},
                   {"memory", Align::right},
                   {"", Align::left, Fit::cut, 1}}};
  const double chosen = step_of(report).seconds;
  for (const Candidate& other : alternatives_of(report)) {
    if (*other.distribution == *report.distribution()) continue;
    const std::string terms = terms_of(report, *other.distribution);
    const bool named = other.name == "data parallel" || terms.find(other.name) != std::string::npos;
    section.rows.push_back({named ? terms : fmt::format("{}: {}", other.name, terms),
                            print_seconds(other.seconds), fmt::format("{:.2f}x", other.seconds / chosen),
                            print_bytes(other.bytes),
                            !other.fits               ? "does not fit"
                            : other.seconds >= chosen ? main_cost(other)
                            : !report.simpler.empty() ? "faster, but less simple"
                                                      : "faster, but not the plan asked for"});
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
