// Lists of hosts, as launchers and schedulers write them.
#include <gtest/gtest.h>

#include "weft/formats/host_list.h"

namespace weft::formats {
namespace {

std::string host_refusal(std::string_view text) {
  const auto list = read_host_list(text);
  EXPECT_FALSE(list.ok()) << text;
  return list.ok() ? "" : list.error().message;
}

TEST(HostList, ReadsHostfiles) {
  const auto list =
      read_host_list("# two of them\nnode1 slots=8 max_slots=8\n\n  node2\tslots=8  # the other\r\n");
  ASSERT_TRUE(list.ok()) << list.error().message;
  EXPECT_EQ(list->hosts, (std::vector<std::string>{"node1", "node2"}));
  EXPECT_EQ(list->slots, 8);
  const auto mpich = read_host_list("10.0.0.1:4\n10.0.0.2:4\n");
  ASSERT_TRUE(mpich.ok()) << mpich.error().message;
  EXPECT_EQ(mpich->hosts.size(), 2u);
  EXPECT_EQ(mpich->slots, 4);
}

TEST(HostList, ReadsSlurmShortForm) {
  const auto list = read_host_list("gpu[001-003,7],login,rack[1-2]n[08-09]\n");
  ASSERT_TRUE(list.ok()) << list.error().message;
  EXPECT_EQ(list->hosts, (std::vector<std::string>{"gpu001", "gpu002", "gpu003", "gpu7", "login", "rack1n08",
                                                   "rack1n09", "rack2n08", "rack2n09"}));
  EXPECT_EQ(list->slots, 0);
}

// Once per process, as some launchers list them.
TEST(HostList, CountsAHostOnce) {
  const auto list = read_host_list("a:1\na:1\nb:1\nb:1\n");
  ASSERT_TRUE(list.ok()) << list.error().message;
  EXPECT_EQ(list->hosts.size(), 2u);
  EXPECT_EQ(list->slots, 2);
}

TEST(HostList, NamesTheLineInErrors) {
  EXPECT_EQ(host_refusal(""), "expected hosts, found none");
  EXPECT_EQ(host_refusal("a slots=8\nb slots=4\n"), "hosts have different numbers of slots: a 8, b 4");
  EXPECT_EQ(host_refusal("a\nb slots=x\n"), "line 2: expected slots= from 0 to 4096, found 'x'");
  EXPECT_EQ(host_refusal("a[1-\n"), "line 1: expected a closing ], found 'a[1-'");
  EXPECT_EQ(host_refusal("a[3-1]\n"),
            "line 1: expected an ascending range of at most 16384 hosts, found '3-1'");
  EXPECT_EQ(host_refusal("a[1-200]b[1-200]\n"), "line 1: expected at most 16384 hosts, found more");
  EXPECT_EQ(host_refusal("a 8\n"), "line 1: expected slots=N after a machine, found '8'");
  EXPECT_EQ(host_refusal("17\n"), "line 1: expected the name of a machine, found '17'");
}

TEST(HostList, DoesNotMatchOtherFormats) {
  EXPECT_TRUE(looks_like_host_list("node[1-8]\n"));
  EXPECT_TRUE(looks_like_host_list("# jobs\na slots=8\n"));
  EXPECT_FALSE(looks_like_host_list("# only comments\n"));
  EXPECT_FALSE(looks_like_host_list("        1024           256     float     sum      -1    22.00\n"));
  EXPECT_FALSE(looks_like_host_list("x,y\n-1,-1\n"));
  EXPECT_FALSE(looks_like_host_list("# nThread 1\nnode1: warning of a driver\n  1024 256 float\n"));
}

}  // namespace
}  // namespace weft::formats
