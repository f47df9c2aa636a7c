// Lines and tables fit a width and lose no more than they may.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "weft/app/explain/lines.h"
#include "weft/app/explain/table.h"

namespace weft::explain {
namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string without_blanks(std::string text) {
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
  return text;
}

void expect_fits(const std::string& text, std::size_t width) {
  for (const std::string& line : lines_of(text)) EXPECT_LE(columns(line), width) << line;
}

// Pages fit any screen, lose no word and keep their columns.
TEST(Lines, PagesFitTheScreen) {
  const std::string page =
      "weft x: a title\n\n"
      "One paragraph of prose that was written for a screen of ninety columns or more, as pages of help are\n"
      "and that goes on here, and ends there.\n\n"
      "  weft x --all         every call that a rank remembers, of which there are many more than fit one "
      "line\n"
      "      an example that is indented and has words enough to be broken over two lines at sixty\n";
  EXPECT_EQ(wrap_page(page, 200), page);
  for (std::size_t width = 40; width <= 120; ++width) {
    expect_fits(wrap_page(page, width), width);
    EXPECT_EQ(without_blanks(wrap_page(page, width)), without_blanks(page));
  }
  EXPECT_EQ(wrap_page(page, 60),
            "weft x: a title\n\n"
            "One paragraph of prose that was written for a screen of\n"
            "ninety columns or more, as pages of help are and that goes\n"
            "on here, and ends there.\n\n"
            "  weft x --all         every call that a rank remembers, of\n"
            "                       which there are many more than fit\n"
            "                       one line\n"
            "      an example that is indented and has words enough to be\n"
            "        broken over two lines at sixty\n");
}

TEST(Lines, CutMarksTruncation) {
  EXPECT_EQ(cut("gather, slice", 20), "gather, slice");
  EXPECT_EQ(cut("gather, slice", 13), "gather, slice");
  EXPECT_EQ(cut("gather, slice", 9), "gather…");
  EXPECT_EQ(cut("├─ gpt_block × 12", 7), "├─ gpt…");
  EXPECT_EQ(cut("abc", 1), "…");
}

TEST(Lines, WrapBreaksAfterPhrases) {
  EXPECT_EQ(wrap("m (b = 64, s = 1024, p = 4)", 24), "m (b = 64, s = 1024,\n  p = 4)\n");
  EXPECT_EQ(wrap("one\ntwo three", 8), "one\ntwo\n  three\n");
  EXPECT_EQ(wrap("", 8), "");
  EXPECT_EQ(wrap("f32[b=128,s=2048,d=12]", 12, 0), "f32[b=128,\ns=2048,d=12]\n");
}

// For any text, nothing but blanks is lost, and no line is too long.
TEST(Lines, WrapKeepsEveryLetter) {
  const std::string text =
      "memory 68 GiB a rank: parameters × 40.7 GiB, aVeryLongWordThatFitsNoWhere,┌└ and more; end";
  for (std::size_t width = 3; width < 120; ++width) {
    const std::string wrapped = wrap(text, width, 2);
    EXPECT_EQ(without_blanks(wrapped), without_blanks(text)) << width;
    expect_fits(wrapped, width);
  }
}

TEST(Table, ColumnsShrinkByPriority) {
  Table table({{"step", Align::left, Fit::cut},
               {"operators", Align::left, Fit::wrap},
               {"moved", Align::right, Fit::whole, 1},
               {"kept", Align::right, Fit::whole, 2},
               {"time", Align::right}});
  table.add(
      {"a step whose name is long", "contract, add, relu, reduce, all-gather", "12.5 MiB", "1 MiB", "3 us"});
  table.add_below("a remark that is longer than the table could be in this narrow place");
  for (const std::size_t width : {40, 50, 60, 80, 200}) {
    const std::string text = table.print(width);
    expect_fits(text, width);
    EXPECT_NE(text.find("3 us"), std::string::npos);
    for (const std::string_view word : {"contract", "all-gather", "remark", "narrow"})
      EXPECT_NE(text.find(word), std::string::npos) << word << " at " << width;
  }
  EXPECT_EQ(table.print(40).find("kept"), std::string::npos);
  EXPECT_NE(table.print(200).find("kept"), std::string::npos);
}

// Sentences wrap; the line above carets is cut to the part around them.
TEST(Lines, ComplaintsFitTheWidth) {
  const std::string line = std::string(60, 'a') + " wrong " + std::string(60, 'b');
  for (const std::size_t place : {2, 63, 100, 129}) {
    const std::string text =
        fmt::format("error 1:{0}: {1}\n  {2}\n{3:{0}}^^^\n  {1}\n", place,
                    "a message that is so long that it does not fit in forty columns", line, "");
    for (const std::size_t width : {40, 80, 100}) {
      const std::string wrapped = wrap_complaint(text, width);
      expect_fits(wrapped, width);
      EXPECT_NE(wrapped.find('^'), std::string::npos) << wrapped;
    }
    EXPECT_EQ(wrap_complaint(text, 200), text);
  }
  EXPECT_EQ(wrap_complaint("error 1:1: m\n  \n  ^\n", 40), "error 1:1: m\n  \n  ^\n");
  EXPECT_EQ(wrap_complaint(fmt::format("e\n  {} wrong\n{:49}^^^^^\n", std::string(46, 'x'), ""), 40),
            fmt::format("e\n  …{} wrong\n{:34}^^^^^\n", std::string(30, 'x'), ""));
}

// A title longer than the minimum width of its column is not truncated: another column is dropped.
TEST(Table, TitlesCountAsMuchAsCells) {
  Table table({{"step on a rank", Align::left, Fit::cut},
               {"operators", Align::left, Fit::cut, 1},
               {"predicted", Align::right},
               {"measured", Align::right},
               {"off by", Align::right}});
  table.add({"a step whose name is long", "contract, add, relu", "123.4 us", "1.23 ms", "10.0x less"});
  for (std::size_t width = 50; width < 90; ++width) expect_fits(table.print(width), width);
}

}  // namespace
}  // namespace weft::explain
