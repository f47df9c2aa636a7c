#include "weft/communication/comm/chunk/program_store.h"

#include <algorithm>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include "weft/collectives/algorithm/algorithm.h"
#include "weft/collectives/algorithm/library.h"
#include "weft/collectives/compile/compile.h"
#include "weft/collectives/synthesis/named_trees.h"

namespace weft::comm {
namespace {

using collective::Algorithm;
using collective::Arguments;

constexpr std::size_t kMostPrograms = 512;

bool has_parameter(const Algorithm& algorithm, std::string_view name) {
  return std::ranges::any_of(algorithm.parameters(),
                             [&](const Algorithm::Parameter& parameter) { return parameter.name == name; });
}

void complete(const Algorithm& algorithm, Arguments& arguments, std::int32_t ranks, std::int32_t root) {
  arguments.try_emplace("ranks", std::int64_t{ranks});
  if (has_parameter(algorithm, "root")) arguments.try_emplace("root", std::int64_t{root});
}

Status expect_known(std::string_view name) {
  if (synthesis::kind_of_trees(name)) return {};
  WEFT_TRY_STATUS(collective::find_algorithm(collective::shipped_algorithms(), name));
  return {};
}

// Synthesized trees have no library entry: add their ranks and root.
void complete(collective::AlgorithmReference& reference, std::int32_t ranks, std::int32_t root) {
  if (const Algorithm* const shipped = collective::shipped_algorithms().find(reference.name))
    return complete(*shipped, reference.arguments, ranks, root);
  const auto kind = synthesis::kind_of_trees(reference.name);
  reference.arguments.try_emplace("ranks", std::int64_t{ranks});
  if (kind == collective::Kind::broadcast || kind == collective::Kind::reduce)
    reference.arguments.try_emplace("root", std::int64_t{root});
}

Result<collective::Moves> moves_of(const collective::AlgorithmReference& reference) {
  if (synthesis::kind_of_trees(reference.name)) return synthesis::named_trees(reference);
  const collective::AlgorithmLibrary& library = collective::shipped_algorithms();
  WEFT_TRY(algorithm, collective::find_algorithm(library, reference.name));
  return collective::trace(algorithm, reference.arguments, library);
}

struct Store {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const collective::Program>, std::less<>> programs;
};

Store& store() {
  static Store programs;
  return programs;
}

}  // namespace

Result<std::shared_ptr<const collective::Program>> program_for(std::string_view name, std::int32_t ranks,
                                                               std::int32_t root, bool join_blocks) {
  WEFT_TRY(reference, collective::parse_reference(name));
  WEFT_TRY_STATUS(expect_known(reference.name));
  const std::string asked_for = collective::print(reference);
  complete(reference, ranks, root);
  if (const auto& given = reference.arguments.find("ranks")->second;
      given != collective::Argument(std::int64_t{ranks}))
    return user_error(fmt::format("{} is not for {} ranks", name, ranks), "leave out its parameter `ranks`");
  const std::string key = collective::print(reference) + (join_blocks ? "" : " apart");
  Store& known = store();
  {
    const std::lock_guard lock(known.mutex);
    if (const auto at = known.programs.find(key); at != known.programs.end()) return at->second;
  }
  // Outside the lock, since it may take long; two threads compiling at once get equal programs.
  WEFT_TRY(moves, moves_of(reference));
  WEFT_TRY(program, collective::compile(moves, {.join_blocks = join_blocks}));
  program.name = asked_for;  // the name used in plans, EXPLAIN and the flight recorder
  auto shared = std::make_shared<const collective::Program>(std::move(program));
  const std::lock_guard lock(known.mutex);
  if (known.programs.size() >= kMostPrograms) known.programs.clear();
  return known.programs.try_emplace(key, std::move(shared)).first->second;
}

std::vector<std::string> programs_for(collective::Kind kind, std::int32_t ranks) {
  const collective::AlgorithmLibrary& library = collective::shipped_algorithms();
  std::vector<std::string> names;
  for (const std::string_view name : library.names()) {
    const Algorithm& algorithm = *library.find(name);
    if (algorithm.kind() != kind) continue;
    Arguments arguments;
    complete(algorithm, arguments, ranks, 0);
    if (collective::check_arguments(algorithm, arguments).ok()) names.emplace_back(name);
  }
  return names;
}

}  // namespace weft::comm
