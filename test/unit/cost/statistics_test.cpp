// The statistics database: rows read back as written, per machine, with concurrent writers. Foreign
// files are neither read nor damaged.
#include "weft/predict/cost/statistics.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include <gtest/gtest.h>

#include "temporary_folder.h"
#include "weft/base/file.h"
#include "weft/predict/cost/machine_identity.h"

namespace weft::cost {
namespace {

using collective::Kind;

CollectiveTime time_of(std::int64_t bytes, double seconds, std::string algorithm = "direct one-shot") {
  return {.kind = Kind::all_reduce,
          .ranks = 4,
          .hosts = 1,
          .transport = "shm",
          .allocated = false,
          .algorithm = std::move(algorithm),
          .bytes = bytes,
          .seconds = seconds,
          .measured_at = 1'794'700'800};
}

class StatisticsTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto opened = Statistics::open(folder_ / "probe.sqlite", Access::write);
    if (!opened.ok() && opened.error().message.find("without SQLite") != std::string::npos) {
      GTEST_SKIP() << opened.error().message;
    }
  }

  Result<Statistics> open(Access access = Access::write, std::string machine = "m") const {
    return Statistics::open(file_, access, std::move(machine));
  }

  // The error of opening `file_`, for writing and for reading; the file must stay unchanged.
  std::string refusal() const {
    const auto before = read_file(file_, 1 << 20);
    const auto writing = open(), reading = open(Access::read);
    EXPECT_FALSE(writing.ok());
    EXPECT_FALSE(reading.ok());
    EXPECT_EQ(*before, *read_file(file_, 1 << 20));
    return reading.ok() ? "" : reading.error().message;
  }

  // Runs SQL on the file itself.
  void meddle(std::string_view sql) const {
    auto database = Database::open(file_, Access::write);
    ASSERT_TRUE(database.ok());
    const Status done = database->execute(sql);
    ASSERT_TRUE(done.ok()) << done.error().message;
  }

  TemporaryFolder folder_;
  std::string file_ = folder_ / "deep/er/statistics.sqlite";
};

TEST_F(StatisticsTest, ClearRemovesTheRowsOfOneMachine) {
  auto mine = open();
  ASSERT_TRUE(mine.ok()) << mine.error().message;
  ASSERT_TRUE(mine->add(std::vector{time_of(4096, 2e-6), time_of(256, 1e-6)}).ok());
  ASSERT_TRUE(mine->add(std::vector{OperatorTime{"copy", 1e-6, 1}}).ok());
  auto other = open(Access::write, "n");
  ASSERT_TRUE(other->add(std::vector{Rate{"copy", 1, 0, 1e9, 1}}).ok());
  EXPECT_EQ(*mine->rows(), 3);
  EXPECT_EQ(*mine->clear(), 3);
  EXPECT_EQ(*mine->rows(), 0);
  EXPECT_EQ(*mine->clear(), 0);
  EXPECT_TRUE(mine->collective_times()->empty());
  EXPECT_EQ(*open(Access::read, "n")->rows(), 1);
  // A missing file has no rows.
  EXPECT_EQ(*Statistics::open(folder_ / "none.sqlite", Access::read, "m")->rows(), 0);
}

TEST_F(StatisticsTest, ReturnsRowsInOrder) {
  {
    auto statistics = open();
    ASSERT_TRUE(statistics.ok()) << statistics.error().message;
    ASSERT_TRUE(statistics->add(std::vector{time_of(4096, 2e-6), time_of(256, 1e-6)}).ok());
    ASSERT_TRUE(statistics->add(std::vector{LinkTime{"tcp", 4, 1, 3, true, 6e-6, 7e9, 5}}).ok());
    ASSERT_TRUE(statistics->add(std::vector{Rate{"copy", 2, 1 << 20, 4e10, 6}}).ok());
  }
  const auto statistics = open(Access::read);
  ASSERT_TRUE(statistics.ok());
  EXPECT_EQ(*statistics->collective_times(), (std::vector{time_of(256, 1e-6), time_of(4096, 2e-6)}));
  EXPECT_EQ(*statistics->links(), (std::vector{LinkTime{"tcp", 4, 1, 3, true, 6e-6, 7e9, 5}}));
  EXPECT_EQ(*statistics->rates(), (std::vector{Rate{"copy", 2, 1 << 20, 4e10, 6}}));
}

TEST_F(StatisticsTest, ALaterMeasurementReplacesAnEarlierOne) {
  auto statistics = open();
  ASSERT_TRUE(statistics->add(std::vector{time_of(256, 1e-6)}).ok());
  ASSERT_TRUE(statistics->add(std::vector{time_of(256, 3e-6)}).ok());
  EXPECT_EQ(*statistics->collective_times(), (std::vector{time_of(256, 3e-6)}));
}

TEST_F(StatisticsTest, DistinguishesMachines) {
  ASSERT_TRUE(open(Access::write, "one")->add(std::vector{time_of(256, 1e-6)}).ok());
  EXPECT_TRUE(open(Access::read, "another")->collective_times()->empty());
  EXPECT_EQ(open(Access::read, "one")->collective_times()->size(), 1u);
}

TEST_F(StatisticsTest, ReadingAMissingFileYieldsNothingAndDoesNotCreateIt) {
  const auto statistics = open(Access::read);
  ASSERT_TRUE(statistics.ok());
  EXPECT_TRUE(statistics->collective_times()->empty());
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(StatisticsTest, RejectsInvalidRowsAsAWhole) {
  auto statistics = open();
  for (const double wrong : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_FALSE(statistics->add(std::vector{time_of(256, 1e-6), time_of(512, wrong)}).ok()) << wrong;
  }
  EXPECT_FALSE(statistics->add(std::vector{time_of(256, 1e-6, "")}).ok());
  EXPECT_FALSE(statistics->add(std::vector{time_of(256, 1e-6, std::string(5000, 'x'))}).ok());
  EXPECT_TRUE(statistics->collective_times()->empty());
}

TEST_F(StatisticsTest, SkipsInvalidRows) {
  ASSERT_TRUE(open()->add(std::vector{time_of(256, 1e-6)}).ok());
  meddle("INSERT INTO collective_time VALUES ('m', 'all_reduce', -3, 1, 'shm', 0, 'x', 1, 1.0, 0)");
  meddle("INSERT INTO collective_time VALUES ('m', 'dance', 2, 1, 'shm', 0, 'x', 1, 1.0, 0)");
  meddle("INSERT INTO collective_time VALUES ('m', 'all_reduce', 2, 1, 'shm', 0, 'x', 'many', 'long', 0)");
  meddle("INSERT INTO collective_time VALUES ('m', 'all_reduce', 4294967298, 1, 'shm', 0, 'x', 1, 9e999, 0)");
  EXPECT_EQ(*open(Access::read)->collective_times(), (std::vector{time_of(256, 1e-6)}));
}

TEST_F(StatisticsTest, TwoProcessesWriteConcurrently) {
  constexpr int kWriters = 2, kRows = 15;
  std::vector<pid_t> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(20);
      auto statistics = open();
      for (int row = 0; row < kRows && statistics.ok(); ++row) {
        if (!statistics->add(std::vector{time_of(row, 1e-6, "writer " + std::to_string(writer))}).ok())
          _exit(1);
      }
      _exit(statistics.ok() ? 0 : 1);
    }
    writers.push_back(child);
  }
  for (const pid_t writer : writers) {
    int status = 0;
    ASSERT_EQ(waitpid(writer, &status, 0), writer);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(open(Access::read)->collective_times()->size(), std::size_t{kWriters * kRows});
}

TEST_F(StatisticsTest, AKilledWriterLeavesTheFileUnchanged) {
  ASSERT_TRUE(open()->add(std::vector{time_of(256, 1e-6)}).ok());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto database = Database::open(file_, Access::write);
    const bool begun = database.ok() && database->execute("BEGIN IMMEDIATE").ok() &&
                       database->execute("DELETE FROM collective_time").ok();
    _exit(begun ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  EXPECT_EQ(open()->collective_times()->size(), 1u);
}

TEST_F(StatisticsTest, RejectsForeignFiles) {
  std::filesystem::create_directories(folder_ / "deep/er");
  std::ofstream(file_) << "this is no database at all, but it is long enough to be looked at as if it were";
  EXPECT_NE(refusal().find("damaged, or not a SQLite database"), std::string::npos);

  std::filesystem::remove(file_);
  meddle("CREATE TABLE recipes (name TEXT)");
  EXPECT_NE(refusal().find("not a statistics database of weft"), std::string::npos);
}

TEST_F(StatisticsTest, RejectsANewerSchema) {
  ASSERT_TRUE(open().ok());
  meddle("PRAGMA user_version = 3");
  EXPECT_NE(refusal().find("by a newer weft"), std::string::npos);
}

TEST_F(StatisticsTest, RejectsASchemaWithTriggers) {
  ASSERT_TRUE(open().ok());
  meddle("CREATE TRIGGER t AFTER INSERT ON rate BEGIN DELETE FROM rate; END");
  EXPECT_NE(refusal().find("not a statistics database of weft"), std::string::npos);
}

TEST_F(StatisticsTest, ReportsADamagedFile) {
  std::vector<CollectiveTime> times;
  for (int row = 0; row < 400; ++row) times.push_back(time_of(row, 1e-6));
  ASSERT_TRUE(open()->add(times).ok());
  const std::string whole = *read_file(file_, 1 << 20);
  ASSERT_GT(whole.size(), 8192u);
  int refused = 0;
  for (std::size_t at = 0; at < whole.size(); at += 1021) {
    std::string damaged = whole;
    for (std::size_t i = at; i < std::min(at + 300, damaged.size()); ++i)
      damaged[i] = static_cast<char>(i * 37);
    ASSERT_TRUE(write_file_atomically(file_, damaged).ok());
    const auto statistics = open(Access::read);
    if (!statistics.ok() || !statistics->collective_times().ok()) ++refused;
  }
  EXPECT_GT(refused, 0);
}

TEST_F(StatisticsTest, NamesAFolderThatCannotBeCreated) {
  std::ofstream(folder_ / "file") << "x";
  const auto statistics = Statistics::open(folder_ / "file/er/statistics.sqlite", Access::write);
  ASSERT_FALSE(statistics.ok());
  EXPECT_EQ(statistics.error().message,
            "cannot create the folder " + folder_ / "file/er" + ": Not a directory");
}

TEST_F(StatisticsTest, RejectsFilesThatOthersMayWrite) {
  namespace fs = std::filesystem;
  ASSERT_TRUE(open()->add(std::vector{time_of(256, 1e-6)}).ok());
  EXPECT_EQ(fs::status(file_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  const fs::path folder = fs::path(file_).parent_path();
  EXPECT_TRUE(Statistics::check(file_).ok());

  fs::permissions(folder, fs::perms::all);
  EXPECT_EQ(refusal(),
            "expected a folder that only its owner may write to: " + folder.string() + " has mode 0777");
  EXPECT_FALSE(Statistics::check(file_).ok());
  fs::permissions(folder, fs::perms::owner_all);

  fs::permissions(file_, fs::perms::owner_all | fs::perms::group_write);
  EXPECT_EQ(refusal(), "expected a file that only its owner may write to: " + file_ + " has mode 0720");
  fs::permissions(file_, fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_TRUE(open(Access::read).ok());

  fs::rename(file_, folder / "elsewhere.sqlite");
  fs::create_symlink(folder / "elsewhere.sqlite", file_);
  EXPECT_EQ(refusal(), "expected a file, found a link: " + file_);
}

TEST_F(StatisticsTest, AcceptsAnInMemoryDatabase) {
  EXPECT_TRUE(Statistics::open(":memory:", Access::write)->add(std::vector{time_of(256, 1e-6)}).ok());
}

TEST(MachineIdentity, IsStableAndContainsTheProcessor) {
  EXPECT_EQ(machine_identity(), machine_identity());
  EXPECT_NE(machine_identity().find("processors"), std::string::npos);
  EXPECT_EQ(processor_name("processor\t: 0\nmodel name\t: Xeon 6 \nflags: x"), "Xeon 6 ");
  EXPECT_EQ(processor_name("CPU implementer\t: 0x41\nCPU part\t: 0xd40\n"), "ARM 0x41 part 0xd40");
  EXPECT_EQ(processor_name("model name"), "unknown processor");
  EXPECT_EQ(processor_name(""), "unknown processor");
}

TEST(PrintDate, IsInUtc) { EXPECT_EQ(print_date(1'794'700'800), "2026-11-15"); }

}  // namespace
}  // namespace weft::cost
