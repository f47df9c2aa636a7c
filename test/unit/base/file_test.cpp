// Files are read whole, and replaced whole or not at all.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "temporary_folder.h"
#include "weft/base/file.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMost = 1 << 20;

class FileTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }

  const TemporaryFolder folder_;
};

TEST_F(FileTest, ReadsBackWhatWasWritten) {
  const std::string_view pieces[] = {"one ", "", std::string_view("t\0o", 3)};
  ASSERT_TRUE(write_file_atomically(path("a"), pieces).ok());
  EXPECT_EQ(*read_file(path("a"), kMost), std::string("one t\0o", 7));
  ASSERT_TRUE(write_file_atomically(path("a"), "shorter").ok());
  EXPECT_EQ(*read_file(path("a"), kMost), "shorter");
  ASSERT_TRUE(write_file_atomically(path("a"), "").ok());
  EXPECT_EQ(*read_file(path("a"), kMost), "");
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
}

TEST_F(FileTest, ReportsReadErrors) {
  ASSERT_TRUE(write_file_atomically(path("digits.csv"), "12345").ok());
  const auto missing = read_file(path("digit.csv"), kMost);
  EXPECT_EQ(missing.error().message, "cannot read " + path("digit.csv") + ": No such file or directory");
  EXPECT_EQ(missing.error().hint, "did you mean 'digits.csv'?");
  EXPECT_EQ(missing.error().fault, Fault::world);
  EXPECT_EQ(read_file(folder_.path(), kMost).error().message,
            "cannot read " + folder_.path() + ": Is a directory");
  EXPECT_EQ(*read_file(path("digits.csv"), 5), "12345");
  EXPECT_EQ(read_file(path("digits.csv"), 4).error().message,
            path("digits.csv") + " is too large: expected at most 4 B, found 5 B");
}

// A pipe reports no size.
TEST_F(FileTest, ReadsPipes) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  const std::string text(100'000, 'x');
  const auto feed = [&] {
    const int pipe = open(path("pipe").c_str(), O_WRONLY);
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t wrote = ::write(pipe, text.data() + at, text.size() - at);
      if (wrote < 0) break;
      at += static_cast<std::size_t>(wrote);
    }
    close(pipe);
  };
  std::thread feeder(feed);
  EXPECT_EQ(*read_file(path("pipe"), kMost), text);
  feeder.join();
}

TEST_F(FileTest, ReportsWriteErrors) {
  const Status lost = write_file_atomically(path("no/a"), "x");
  EXPECT_EQ(lost.error().message, "cannot write " + path("no/a") + ": No such file or directory");
  EXPECT_EQ(lost.error().hint, "create the folder first");
  EXPECT_EQ(write_file_atomically(folder_.path(), "x").error().message,
            "cannot write " + folder_.path() + ": Is a directory");
  // Renaming a file over a device would remove the device.
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(write_file_atomically(path("pipe"), "x").error().message,
            "cannot write " + path("pipe") + ": expected a regular file");
  EXPECT_EQ(names(), std::vector<std::string>{"pipe"});
}

TEST_F(FileTest, DoesNotReplaceReadOnlyFiles) {
  if (geteuid() == 0) GTEST_SKIP() << "nothing is read-only to root";
  ASSERT_TRUE(write_file_atomically(path("a"), "old").ok());
  ASSERT_EQ(chmod(path("a").c_str(), 0444), 0);
  EXPECT_EQ(write_file_atomically(path("a"), "new").error().message,
            "cannot write " + path("a") + ": Permission denied");
  EXPECT_EQ(*read_file(path("a"), kMost), "old");
}

TEST_F(FileTest, KeepsPermissionsAndLinks) {
  ASSERT_TRUE(write_file_atomically(path("a"), "old").ok());
  ASSERT_EQ(chmod(path("a").c_str(), 0640), 0);
  fs::create_symlink("a", path("link"));
  ASSERT_TRUE(write_file_atomically(path("link"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(*read_file(path("a"), kMost), "new");
  struct stat about = {};
  ASSERT_EQ(stat(path("a").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 0640u);
}

// A file size limit stands in for a full disk.
TEST_F(FileTest, KeepsTheOldFileIfTheDiskIsFull) {
  ASSERT_TRUE(write_file_atomically(path("a"), "old").ok());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {4096, 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    const Status full = write_file_atomically(path("a"), std::string(100'000, 'x'));
    const bool reported = !full.ok() &&
                          full.error().message == "cannot write " + path("a") + ": File too large" &&
                          full.error().hint == "free some space, or write to another disk";
    _exit(reported ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(*read_file(path("a"), kMost), "old");
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
}

TEST_F(FileTest, ReplacesLeftoversOfAKilledWriter) {
  const int leftover = open(path(".a.partial").c_str(), O_CREAT | O_WRONLY, 0600);
  ASSERT_EQ(::write(leftover, "half of a long", 14), 14);
  close(leftover);
  ASSERT_TRUE(write_file_atomically(path("a"), "new").ok());
  EXPECT_EQ(*read_file(path("a"), kMost), "new");
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
}

// A temporary file that another user created is not written to: its owner could change the contents
// afterwards.
TEST_F(FileTest, DoesNotWriteToFilesOfOtherUsers) {
  const auto written = [&](const std::string& name) {
    const Status status = write_file_atomically(path(name), "new");
    EXPECT_TRUE(status.ok()) << status.error().message;
    struct stat about = {};
    EXPECT_EQ(lstat(path(name).c_str(), &about), 0);
    EXPECT_TRUE(S_ISREG(about.st_mode) && about.st_uid == geteuid() && about.st_nlink == 1) << name;
    EXPECT_EQ(*read_file(path(name), kMost), "new");
  };
  ASSERT_TRUE(write_file_atomically(path("precious"), "old").ok());
  ASSERT_EQ(symlink(path("precious").c_str(), path(".a.partial").c_str()), 0);
  written("a");
  ASSERT_EQ(link(path("precious").c_str(), path(".b.partial").c_str()), 0);
  written("b");
  ASSERT_EQ(mkfifo(path(".c.partial").c_str(), 0666), 0);
  written("c");
  if (geteuid() == 0) {
    close(open(path(".d.partial").c_str(), O_CREAT | O_WRONLY, 0666));
    ASSERT_EQ(chown(path(".d.partial").c_str(), 12345, 12345), 0);
    written("d");
  }
  EXPECT_EQ(*read_file(path("precious"), kMost), "old");
}

TEST_F(FileTest, DoesNotDisturbAnotherWriter) {
  const int other = open(path(".a.partial").c_str(), O_CREAT | O_WRONLY, 0600);
  ASSERT_EQ(flock(other, LOCK_EX), 0);
  EXPECT_EQ(write_file_atomically(path("a"), "new").error().message,
            "cannot write " + path("a") + ": another process is writing it");
  EXPECT_EQ(names(), std::vector<std::string>{".a.partial"});
  close(other);
}

// Concurrent writers of one name: some fail with "another process is writing it", none corrupts the file.
TEST_F(FileTest, ConcurrentWritersDoNotCorruptFiles) {
  ASSERT_TRUE(write_file_atomically(path("a"), std::string(50'000, 'z')).ok());
  std::vector<std::thread> writers;
  for (const char letter : {'p', 'q', 'r'})
    writers.emplace_back([this, letter] {
      for (int i = 0; i < 30; ++i) {
        const Status wrote = write_file_atomically(path("a"), std::string(50'000, letter));
        EXPECT_TRUE(wrote.ok() || wrote.error().message.ends_with(": another process is writing it"));
      }
    });
  for (int i = 0; i < 100; ++i) {
    const auto text = read_file(path("a"), kMost);
    ASSERT_TRUE(text.ok());
    EXPECT_EQ(*text, std::string(50'000, text->front()));
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
}

// Endless devices and pipes that never deliver data are rejected.
TEST_F(FileTest, RejectsFoldersDevicesAndSilentPipes) {
  using namespace std::chrono_literals;
  const auto refusal = [](const std::string& path) {
    const auto file = open_to_read(path, 30ms);
    return file.ok() ? std::string("opened") : file.error().message;
  };
  for (const std::string device : {"/dev/zero", "/dev/urandom", "/dev/null"})
    EXPECT_EQ(refusal(device), "cannot read " + device + ": expected a file or a pipe, found a device");
  EXPECT_EQ(refusal("/"), "cannot read /: Is a directory");
  EXPECT_FALSE(read_file("/dev/zero", kMost).ok());

  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(refusal(pipe), "cannot read " + pipe + ": it is a pipe that delivered no data within 30 ms");
  // A pipe with a writer is read to its end, however slow the writer is.
  std::thread writer([&] {
    const int end = ::open(pipe.c_str(), O_WRONLY | O_CLOEXEC);
    for (const std::string_view part : {"1,", "2\n"}) {
      EXPECT_EQ(::write(end, part.data(), part.size()), static_cast<ssize_t>(part.size()));
      std::this_thread::sleep_for(5ms);
    }
    ::close(end);
  });
  const auto read = read_file(pipe, kMost);
  writer.join();
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, "1,2\n");
}

}  // namespace
}  // namespace weft
