// What ranks said, and the summary before it.
#include <gtest/gtest.h>

#include "weft/explain/diagnosis.h"

namespace weft::explain {
namespace {

using transport::Patient;

TEST(Diagnosis, BeginsWithASummary) {
  const Patient patients[] = {
      {4711, 0, 3,
       "rank 0 of 3, process 4711\n  waits for rank 1 in an exchange for 4.2 s (group 0, number 7)\n", ""},
      {4712, 1, 3, "rank 1 of 3, process 4712\n  computes\n", ""},
      {4713, -1, 0, "", "stopped (T)"}};
  EXPECT_EQ(print_text(patients),
            "3 ranks here: 1 waits, 1 does not answer\n"
            "rank 0 waits for rank 1 in an exchange for 4.2 s (group 0, number 7)\n"
            "\n"
            "rank 0 of 3, process 4711\n  waits for rank 1 in an exchange for 4.2 s (group 0, number 7)\n"
            "\n"
            "rank 1 of 3, process 4712\n  computes\n"
            "\n"
            "process 4713 does not answer: it is stopped (T)\n");
  EXPECT_EQ(print_text(std::span(patients).subspan(1, 1)),
            "1 rank here: it waits for nobody\n\nrank 1 of 3, process 4712\n  computes\n");
  EXPECT_TRUE(print_json(patients).starts_with(R"({"ranks":3,"waiting":1,"not_answering":1,"processes":[{)"))
      << print_json(patients);
}

}  // namespace
}  // namespace weft::explain
