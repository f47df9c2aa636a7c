// main() for tests that start ranks: a rank is this test program run again.
#include <gtest/gtest.h>

#include "own_data.h"
#include "rank_parts.h"
#include "weft/runtime/run/rank_program.h"

int main(int argc, char** argv) {
  if (const auto code = weft::run::rank_main(weft::session::kRankParts)) return *code;
  testing::InitGoogleTest(&argc, argv);
  testing::AddGlobalTestEnvironment(new weft::OwnData);
  return RUN_ALL_TESTS();
}
