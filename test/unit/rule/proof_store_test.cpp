// Stored proofs are reused only if nothing changed.
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "weft/base/file.h"
#include "weft/plan/ops/operators.h"
#include "weft/rules/rule/behaviour.h"
#include "weft/rules/rule/proof_store.h"
#include "weft/rules/rule/proof_text.h"

namespace weft::rule {
namespace {

namespace fs = std::filesystem;

ProveOptions quick() {
  ProveOptions options;
  options.shapes = 16;
  options.max_order_runs = 16;
  return options;
}

std::vector<Rule> rules(std::string_view text) {
  auto parsed = parse_rules(text, "a.rules", ops::all());
  EXPECT_TRUE(parsed.ok()) << parsed.error().message;
  return parsed.ok() ? std::move(parsed).value() : std::vector<Rule>();
}

constexpr std::string_view kThree = R"(
rule good explore
  given x[I]
  left  y = neg(neg(x))
  right y = x
rule half explore
  given x[n, I], y[n, I]
  left  z = slice(concat(x, y, along=n), along=n, begin=a, end=b)
  right z = slice(x, along=n, begin=a, end=b)
rule wrong explore
  given x[I]
  left  y = neg(neg(x))
  right y = neg(x)
)";

class ProofStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              ("weft_proofs_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::vector<fs::path> files() const {
    std::vector<fs::path> result;
    for (const auto& entry : fs::directory_iterator(folder_)) result.push_back(entry.path());
    return result;
  }

  fs::path folder_;
};

TEST_F(ProofStoreTest, UsesOnlyProvenRules) {
  const auto set = load_proven(rules(kThree), nullptr, quick());
  ASSERT_TRUE(set.ok());
  ASSERT_EQ(set->rules.size(), 2u);
  EXPECT_EQ(set->rules[0].name, "good");
  EXPECT_TRUE(set->rules[0].when.empty());
  EXPECT_EQ(print(set->rules[1].when, set->rules[1]), "b <= size(x, n)");
  EXPECT_EQ(set->verdicts[1].judgement, Judgement::guarded);
  ASSERT_EQ(set->refused.size(), 1u);
  EXPECT_EQ(set->refused[0].rule.name, "wrong");
  EXPECT_EQ(set->refused[0].verdict.judgement, Judgement::refuted);
  EXPECT_EQ(set->made, 3);
}

TEST_F(ProofStoreTest, ReusesProofs) {
  const ProofStore store((folder_ / "deep" / "er").string());
  const auto first = load_proven(rules(kThree), &store, quick());
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->made, 3);
  EXPECT_FALSE(first->not_stored);
  const auto second = load_proven(rules(kThree), &store, quick());
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->made, 0);
  EXPECT_EQ(second->reused, 3);
  EXPECT_EQ(second->rules, first->rules);
  EXPECT_EQ(second->verdicts[1].guard, first->verdicts[1].guard);
  EXPECT_EQ(second->refused[0].verdict.counterexamples[0].left,
            first->refused[0].verdict.counterexamples[0].left);
  // Another number of shapes needs another proof.
  ProveOptions more = quick();
  more.shapes = 17;
  EXPECT_EQ(load_proven(rules(kThree), &store, more)->made, 3);
}

TEST_F(ProofStoreTest, IgnoresABrokenFile) {
  const ProofStore store(folder_.string());
  ASSERT_TRUE(load_proven(rules(kThree), &store, quick()).ok());
  for (const fs::path& file : files()) {
    std::string text = *read_file(file.string(), 1 << 20);
    text[text.size() / 2] ^= 1;
    ASSERT_TRUE(write_file_atomically(file.string(), text).ok());
  }
  const auto mended = load_proven(rules(kThree), &store, quick());
  EXPECT_EQ(mended->made, 3);
  for (const fs::path& file : files()) ASSERT_TRUE(write_file_atomically(file.string(), "").ok());
  EXPECT_EQ(load_proven(rules(kThree), &store, quick())->made, 3);
  EXPECT_EQ(load_proven(rules(kThree), &store, quick())->reused, 3);
}

// Anyone can compute the checksum of a proof, so the checksum alone does not make it trusted.
TEST_F(ProofStoreTest, DetectsAForgedProof) {
  const ProofStore store(folder_.string());
  const std::vector<Rule> all = rules(R"(
rule lie explore
  given x[I], y[I]
  left  z = add(x, y)
  right z = sub(x, y)
rule half explore
  given x[n, I], y[n, I]
  left  z = slice(concat(x, y, along=n), along=n, begin=a, end=b)
  right z = slice(x, along=n, begin=a, end=b)
)");
  RuleProof forged;
  forged.verdict.judgement = Judgement::proven;
  forged.verdict.rounding = Rounding::exact;
  forged.verdict.shapes = 96;
  for (const Rule& rule : all) ASSERT_TRUE(store.keep(proof_key(rule, quick()), forged).ok());
  const auto set = load_proven(all, &store, quick());
  ASSERT_TRUE(set.ok());
  EXPECT_EQ(set->reused, 0);
  ASSERT_EQ(set->rules.size(), 1u);
  EXPECT_EQ(set->rules[0].name, "half");
  EXPECT_FALSE(set->rules[0].when.empty());  // and not without its guard
  ASSERT_EQ(set->refused.size(), 1u);
  EXPECT_EQ(set->refused[0].verdict.judgement, Judgement::refuted);
  // The true proofs have replaced them.
  EXPECT_EQ(load_proven(all, &store, quick())->reused, 2);
}

TEST_F(ProofStoreTest, DoesNotUseAFolderThatOthersMayWrite) {
  const ProofStore store(folder_.string());
  ASSERT_TRUE(load_proven(rules(kThree), &store, quick()).ok());
  EXPECT_TRUE(store.check().ok());
  fs::permissions(folder_, fs::perms::all);
  EXPECT_FALSE(store.check().ok());
  const auto set = load_proven(rules(kThree), &store, quick());
  ASSERT_TRUE(set.ok());
  EXPECT_EQ(set->made, 3);
  EXPECT_TRUE(set->not_stored);
  EXPECT_EQ(set->rules.size(), 2u);
}

TEST_F(ProofStoreTest, DoesNotFollowLinks) {
  const ProofStore store((folder_ / "used").string()), other((folder_ / "other").string());
  ASSERT_TRUE(load_proven(rules(kThree), &other, quick()).ok());
  ASSERT_TRUE(load_proven(rules(kThree), &store, quick()).ok());
  for (const auto& entry : fs::directory_iterator(folder_ / "used")) {
    fs::remove(entry.path());
    fs::create_symlink(folder_ / "other" / entry.path().filename(), entry.path());
  }
  EXPECT_EQ(load_proven(rules(kThree), &store, quick())->made, 3);
}

TEST_F(ProofStoreTest, IgnoresEveryTruncatedFile) {
  const std::vector<Rule> all = rules(kThree);
  const Digest key = proof_key(all[1], quick());
  const std::string whole = print_proof(key, prove(all[1], quick()));
  ASSERT_TRUE(read_proof(whole, key, all[1]));
  for (std::size_t length = 0; length < whole.size(); length += 7)
    EXPECT_FALSE(read_proof(whole.substr(0, length), key, all[1])) << length << " bytes";
}

// Everything that affects a proof is in its key.
TEST_F(ProofStoreTest, AnotherSeedNeedsAnotherProof) {
  const std::vector<Rule> all = rules(kThree);
  ProveOptions seeded = quick();
  seeded.seed += 1;
  EXPECT_NE(proof_key(all[0], quick()), proof_key(all[0], seeded));
  EXPECT_NE(proof_key(all[0], quick()), proof_key(all[1], quick()));
}

TEST_F(ProofStoreTest, RejectsAProofOfAnotherRule) {
  const std::vector<Rule> all = rules(kThree);
  const Digest good = proof_key(all[0], quick()), wrong = proof_key(all[2], quick());
  EXPECT_NE(good, wrong);
  const std::string text = print_proof(good, prove(all[0], quick()));
  EXPECT_TRUE(read_proof(text, good, all[0]));
  EXPECT_FALSE(read_proof(text, wrong, all[2]));
  EXPECT_FALSE(read_proof("", good, all[0]));
  EXPECT_FALSE(read_proof("x\n", good, all[0]));
}

TEST_F(ProofStoreTest, WorksWithoutAFolder) {
  ASSERT_TRUE(write_file_atomically(folder_.string(), "a file").ok());
  const ProofStore store((folder_ / "under").string());
  const auto set = load_proven(rules(kThree), &store, quick());
  ASSERT_TRUE(set.ok());
  EXPECT_EQ(set->rules.size(), 2u);
  EXPECT_TRUE(set->not_stored);
}

TEST_F(ProofStoreTest, SupportsConcurrentUse) {
  const ProofStore store(folder_.string());
  std::vector<std::thread> threads;
  for (int k = 0; k < 3; ++k)
    threads.emplace_back([&] {
      const auto set = load_proven(rules(kThree), &store, quick());
      EXPECT_TRUE(set.ok() && set->rules.size() == 2);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(load_proven(rules(kThree), &store, quick())->reused, 3);
}

// The same text over operators with another meaning has another hash: here exp and log swapped.
TEST_F(ProofStoreTest, HashesTheMeaningOfOperators) {
  const auto one = rules("rule r explore given x[I] left y = neg(exp(x)) right y = neg(exp(x))");
  const auto other = rules("rule r explore given x[I] left y = neg(log(x)) right y = neg(log(x))");
  EXPECT_EQ(behaviour(one[0]), behaviour(one[0]));
  EXPECT_NE(behaviour(one[0]), behaviour(other[0]));
}

}  // namespace
}  // namespace weft::rule
