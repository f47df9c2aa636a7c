#include "weft/language/complaint.h"

#include <string>

#include <gtest/gtest.h>

namespace weft::language {
namespace {

TEST(Complaint, UnderlinesTheWholeToken) {
  EXPECT_EQ(complain(user_error("unknown cluster: ring5", "did you mean 'ring4'?", {19, 5}),
                     "SELECT sum(g) OVER ring5 FROM g"),
            "error 1:20: unknown cluster: ring5\n"
            "  SELECT sum(g) OVER ring5 FROM g\n"
            "                     ^^^^^\n"
            "  did you mean 'ring4'?\n");
}

TEST(Complaint, WithoutALocationIsItsMessage) {
  EXPECT_EQ(complain(environment_error("file is gone: a.bin"), "SHOW"), "error: file is gone: a.bin\n");
  EXPECT_EQ(complain(user_error("no", "yes"), ""), "error: no\n  yes\n");
}

TEST(Complaint, CountsCharactersNotBytes) {
  EXPECT_EQ(complain(user_error("m", "", {8, 3}), "'日é' abc"),
            "error 1:6: m\n"
            "  '日é' abc\n"
            "       ^^^\n");
}

TEST(Complaint, ShowsTabsAsOneSpace) {
  EXPECT_EQ(complain(user_error("m", "", {2, 1}), "\t\tx\t\r\n"), "error 1:3: m\n    x \n    ^\n");
}

TEST(Complaint, StaysWithinItsLine) {
  EXPECT_EQ(complain(user_error("m", "", {4, 9}), "one\ntwo\nthree"), "error 2:1: m\n  two\n  ^^^\n");
  EXPECT_EQ(complain(user_error("m", "", {3, 1}), "one\ntwo"), "error 1:4: m\n  one\n     ^\n");
  EXPECT_EQ(complain(user_error("m", "", {99, 1}), "one"), "error 1:4: m\n  one\n     ^\n");
  EXPECT_EQ(complain(user_error("m", "", {0, 1}), ""), "error 1:1: m\n  \n  ^\n");
}

TEST(Complaint, TruncatesLongLinesAroundTheLocation) {
  const std::string line = std::string(100, 'a') + "HERE" + std::string(100, 'b');
  EXPECT_EQ(complain(user_error("m", "", {100, 4}), line),
            "error 1:101: m\n"
            "  …" +
                std::string(40, 'a') + "HERE" + std::string(56, 'b') + "…\n" + "   " + std::string(40, ' ') +
                "^^^^\n");
  EXPECT_EQ(complain(user_error("m", "", {204, 1}), line),
            "error 1:205: m\n  …" + std::string(100, 'b') + "\n   " + std::string(100, ' ') + "^\n");
  // The start of a long line is shown as it is.
  EXPECT_EQ(complain(user_error("m", "", {0, 1}), line),
            "error 1:1: m\n  " + std::string(100, 'a') + "…\n  ^\n");
}

TEST(Complaint, ShortensHugeLines) {
  const std::string line(10'000'000, 'x');
  EXPECT_LT(complain(user_error("m", "", {5'000'000, 9'000'000}), line).size(), 400u);
}

TEST(Complaint, NeverSplitsCharacters) {
  EXPECT_EQ(complain(user_error("m", "", {1, 1}), "a\xFF\x62"), "error 1:2: m\n  a?b\n   ^\n");
}

// Each invalid byte is printed as one character, so the carets count it as one.
TEST(Complaint, CountsInvalidBytesAsPrinted) {
  EXPECT_EQ(complain(user_error("m", "", {4, 1}), "a\x80\x80\xE2z"), "error 1:5: m\n  a???z\n      ^\n");
  const std::string line(300, '\x80');
  const std::string shown = complain(user_error("m", "", {200, 1}), line + "z");
  EXPECT_LT(shown.size(), 400u) << shown;
}

}  // namespace
}  // namespace weft::language
