// Error rate of the collective checker, by kind of adversary.
//
//   build/release/bench_adversary_collectives [MUTATIONS]
//
// Wrong verdicts are: a correct plan that is refused, a broken plan that is accepted, and an
// accepted mutation that gives a wrong result under some schedule. Refused mutations are not run:
// refusing a harmless one does not count as wrong here.
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include <fmt/format.h>

#include "../test/plans/mutations.h"
#include "../test/plans/plan_simulator.h"
#include "../test/plans/program_simulator.h"
#include "weft/collectives/algorithm/library.h"
#include "weft/collectives/check/check.h"
#include "weft/collectives/compile/compile.h"
#include "weft/formats/collective_source.h"

namespace {

using namespace weft;

constexpr std::uint64_t kSchedules = 100;

struct Row {
  int tried = 0, wrong = 0;
};

void print_row(const std::string& kind, const Row& row) {
  fmt::print("{:52} {:8} {:15}\n", kind, row.tried, row.wrong);
}

Row right_plans() {
  Row row;
  for (const plans::GoodPlan& good : plans::good_plans()) {
    ++row.tried;
    row.wrong += collective::check(plans::plan_of(std::string(good.text))).finding.has_value();
  }
  return row;
}

void broken_plans() {
  std::map<std::string, Row> rows;
  for (const plans::BrokenPlan& broken : plans::broken_plans()) {
    Row& row = rows[std::string(broken.kind)];
    ++row.tried;
    row.wrong += !collective::check(plans::broken_plan(broken)).finding;
  }
  for (const auto& [kind, row] : rows) print_row("broken MSCCL++ plan: " + kind, row);
}

Row mutated_plans(std::uint64_t mutations) {
  Row row;
  for (std::uint64_t seed = 0; seed < mutations; ++seed) {
    plans::Mutations change(seed + 1000003);
    collective::OneSided plan =
        plans::plan_of(std::string(plans::good_plans()[change.draw(plans::good_plans().size())].text));
    for (std::size_t times = 1 + change.draw(3); times > 0; --times) change.mutate(plan);
    ++row.tried;
    if (collective::check(plan).finding) continue;
    bool wrong = false;
    for (std::uint64_t schedule = 0; schedule < kSchedules && !wrong; ++schedule)
      wrong = !plans::PlanSimulator(plan, schedule).run().empty();
    row.wrong += wrong;
  }
  return row;
}

Row mutated_algorithms(std::uint64_t mutations) {
  using namespace collective;
  std::vector<Program> programs;
  for (const std::string_view name : shipped_algorithms().names()) {
    const auto reference = parse_reference(std::string(name) + "(ranks=4)");
    const auto moves = trace(*shipped_algorithms().find(name), reference->arguments, shipped_algorithms());
    if (!moves.ok()) continue;
    auto program = compile(*moves, {});
    if (program.ok()) programs.push_back(std::move(*program));
  }
  Row row;
  for (std::uint64_t seed = 0; seed < mutations; ++seed) {
    plans::Mutations change(seed + 1000003);
    Program program = programs[change.draw(programs.size())];
    change.mutate(program);
    ++row.tried;
    if (check(program).finding) continue;
    bool wrong = false;
    for (const Placement placement : {Placement::in_place, Placement::out_of_place}) {
      if (program.placement != Placement::either && program.placement != placement) continue;
      for (std::uint64_t schedule = 0; schedule < kSchedules / 4 && !wrong; ++schedule)
        wrong = !plans::ProgramSimulator(program, placement, schedule).run().empty();
    }
    row.wrong += wrong;
  }
  return row;
}

// Published files, if available. `right`: whether they are correct.
std::optional<Row> files(const std::filesystem::path& folder, const std::string& beginning, bool right) {
  if (!std::filesystem::exists(folder)) return std::nullopt;
  Row row;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".xml" || !name.starts_with(beginning)) continue;
    ++row.tried;
    auto source = formats::read_collective(entry.path().string());
    const bool accepted =
        source.ok() && source->program && !collective::check(source->program->program).finding;
    row.wrong += accepted != right;
  }
  return row;
}

}  // namespace

int main(int count, char** words) {
  const std::uint64_t mutations = count > 1 ? std::strtoull(words[1], nullptr, 10) : 20000;
  fmt::print("{:52} {:>8} {:>15}\n", "kind of adversary", "tried", "wrong verdicts");
  print_row("right MSCCL++ plans", right_plans());
  broken_plans();
  print_row("mutations of MSCCL++ plans", mutated_plans(mutations));
  print_row("mutations of shipped algorithms", mutated_algorithms(mutations));
  const std::filesystem::path corpus = WEFT_SOURCE_DIR "/../shared/corpus";
  if (const auto row = files(corpus / "msccl-xml", "", true))
    print_row("correct published MSCCL programs", *row);
  if (const auto row = files(corpus / "msccl-xml-broken", "b", false))
    print_row("broken MSCCL programs", *row);
}
