#include "weft/communication/transport/agreement.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "weft/base/random.h"

namespace weft::transport {
namespace {

// Only the agreement protocol, with any message delays that links allow (in order between two
// ranks) and failures at any moment, also between the messages of one step: all ranks that decide
// make the same decision.
TEST(Agreement, IsTheSameForAllUnderAnySchedule) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Random random(seed);
    const auto ranks = static_cast<std::int32_t>(random.between(2, 6));
    struct Place {
      Agreement agreement;
      bool begun = false, dead = false;
      std::set<std::int32_t> mourned = {};
    };
    Agreement::Ranks all;
    std::vector<Place> places;
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
      places.push_back({Agreement(rank)});
      all.push_back(rank);
    }
    std::map<std::pair<std::int32_t, std::int32_t>, std::deque<Agreement::Message>> lines;
    std::int64_t deaths_left = random.between(0, ranks - 1);
    const auto post = [&](std::int32_t from, std::vector<Agreement::Message> messages) {
      for (auto& message : messages) {
        if (deaths_left > 0 && random.below(12) == 0) {  // fails with the rest unsent
          --deaths_left;
          places[static_cast<std::size_t>(from)].dead = true;
          return;
        }
        lines[{from, message.to}].push_back(message);
      }
    };
    const auto finished = [&] {
      return std::ranges::all_of(places,
                                 [](const Place& place) { return place.dead || place.agreement.decision(); });
    };
    int turns = 0;
    for (; !finished() && turns < 20'000; ++turns) {
      const auto self = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(ranks)));
      Place& place = places[static_cast<std::size_t>(self)];
      if (place.dead) continue;
      const auto other = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(ranks)));
      auto& line = lines[{other, self}];
      if (!place.begun && random.below(4) == 0) {
        place.begun = true;
        post(self, place.agreement.begin(all));
      } else if (deaths_left > 0 && random.below(40) == 0) {
        --deaths_left;
        place.dead = true;
      } else if (places[static_cast<std::size_t>(other)].dead && !place.mourned.contains(other) &&
                 (line.empty() || random.below(3) == 0)) {
        place.mourned.insert(other);  // with its last message lost, or not
        line.clear();
        post(self, place.agreement.note_failure(other));
      } else if (!line.empty()) {
        const Agreement::Message message = line.front();
        line.pop_front();
        const auto copy = unpack_agreement(pack(message.word, message.ranks));
        post(self, place.agreement.hear(other, copy->first, copy->second));
      }
    }
    ASSERT_TRUE(finished()) << "seed " << seed;
    std::optional<Agreement::Ranks> decision;
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
      const Place& place = places[static_cast<std::size_t>(rank)];
      if (!place.agreement.decision()) continue;
      if (!decision) decision = place.agreement.decision();
      ASSERT_EQ(*decision, *place.agreement.decision()) << "seed " << seed;
      ASSERT_TRUE(place.dead || std::ranges::binary_search(*decision, rank)) << "seed " << seed;
    }
  }
}

TEST(Agreement, IgnoresInvalidMessages) {
  EXPECT_FALSE(unpack_agreement(""));
  EXPECT_FALSE(unpack_agreement("\x05"));
  EXPECT_FALSE(unpack_agreement(std::string("\x01\x00\x00", 3)));
  EXPECT_TRUE(unpack_agreement("\x01"));
  // Invalid lists of ranks: repeated, descending, negative.
  const std::string sound = pack(Agreement::Word::decided, {1, 3, 700});
  EXPECT_TRUE(unpack_agreement(sound));
  for (const Agreement::Ranks& ranks : {Agreement::Ranks{3, 3}, {3, 1}, {-1}, {-5, 2}})
    EXPECT_FALSE(unpack_agreement(pack(Agreement::Word::decided, ranks)));
  for (std::size_t at = 0; at < sound.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = sound;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      const auto read = unpack_agreement(changed);
      if (!read) continue;
      EXPECT_GE(read->first, Agreement::Word::arrived);
      EXPECT_LE(read->first, Agreement::Word::decided);
      EXPECT_TRUE(std::ranges::is_sorted(read->second));
      EXPECT_GE(read->second.front(), 0);
    }
}

}  // namespace
}  // namespace weft::transport
