// test/unit/case/own_data.h -- a private statistics folder per test program, so that its
// measurements do not affect the estimates of others.
#pragma once
#include <cstdlib>
#include <optional>

#include <gtest/gtest.h>

#include "temporary_folder.h"

namespace weft {

class OwnData final : public testing::Environment {
 public:
  void SetUp() override { setenv("XDG_DATA_HOME", folder_.emplace().path().c_str(), 1); }
  void TearDown() override { folder_.reset(); }

 private:
  std::optional<TemporaryFolder> folder_;
};

}  // namespace weft
