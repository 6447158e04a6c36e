#include "tracker/paths/namespace_rules.h"

#include <fnmatch.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/tracker/samples.h"
#include "tracker/paths/path.h"

namespace spoor::tracker {
namespace {

NamespaceRules excluding(std::vector<std::string> globs) { return NamespaceRules({std::move(globs), false}); }

TEST(NamespaceRulesTest, ReservedNamesAndGlobs_AreIgnoredWithAllBelow) {
  struct Case {
    std::vector<std::string> globs;
    std::vector<std::string_view> ignored;
    std::vector<std::string_view> kept;
  };
  const Case cases[] = {
      // ancestor 7: reserved names are ignored always, not only while debugging.
      {{},
       {".spoor", ".spoor/.tracker.bin", ".minio.sys", ".minio.sys/tmp/x"},
       {"bucket/.spoor", "bucket/.minio.sys/x", ".spoor2", "x.spoor", ".Spoor"}},
      {{"*.tmp", "lost+found"},
       {"x.tmp", "bucket/x.tmp", "bucket/x.tmp/below", "lost+found", "bucket/lost+found/x", "bucket/.tmp",
        "bucket/\xff\xfe.tmp"},
       {"bucket", "bucket/x.tmp2", "bucket/tmp", "lost+foundx", "bucket/\xff\xfe"}},
      {{"bucket/*/cache"},
       {"bucket/a/cache", "bucket/a/cache/deep/below"},
       {"bucket/cache", "bucket/a/b/cache", "x/bucket/a/cache", "bucket/a"}},
      {{"[a", ""}, {}, {"a"}},  // not valid
  };
  for (const Case& each : cases) {
    const NamespaceRules rules = excluding(each.globs);
    for (const std::string_view path : each.ignored) EXPECT_TRUE(rules.ignores(path)) << path;
    for (const std::string_view path : each.kept) EXPECT_FALSE(rules.ignores(path)) << path;
  }
}

// The rule as fnmatch alone says it: each glob against each component, or against the path up to it.
bool is_excluded_by_fnmatch(const std::vector<std::string>& globs, const std::string& path) {
  for (ComponentCursor at(path); at.next();) {
    const std::string prefix(at.prefix());
    const std::string name(at.component());
    const bool matches = std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) {
      if (glob.find('/') == std::string::npos) return ::fnmatch(glob.c_str(), name.c_str(), 0) == 0;
      return ::fnmatch(glob.c_str(), prefix.c_str(), FNM_PATHNAME) == 0;
    });
    if (matches) return true;
  }
  return false;
}

TEST(NamespaceRulesTest, RandomGlobs_MatchAsFnmatchDoes) {
  SPOOR_RANDOM(random);
  const auto text = [&](std::string_view alphabet, std::uint64_t length_max) {
    std::string made;
    for (std::uint64_t i = random.between(1, length_max); i > 0; --i)
      made += alphabet[random.below(alphabet.size())];
    return made;
  };
  int excluded = 0;
  for (int round = 0; round < 60'000; ++round) {
    const std::vector<std::string> globs = {text("ab/*?[]!^-\\:", 9), text("ab//**?", 7)};
    const auto path = normalise_path(text("aab[]!-\\///", 12));
    if (!path || path->starts_with(".")) continue;
    const NamespaceRules rules = excluding(globs);
    const bool expected = is_excluded_by_fnmatch(globs, *path);
    excluded += expected ? 1 : 0;
    ASSERT_EQ(rules.ignores(*path), expected) << globs[0] << "   " << globs[1] << "   " << *path;
    bool by_walk = false;
    for (ComponentCursor at(*path); !by_walk && at.next();)
      by_walk = rules.ignores_child(at.prefix(), at.component());
    ASSERT_EQ(by_walk, expected) << globs[0] << "   " << globs[1] << "   " << *path;
  }
  EXPECT_GT(excluded, 1000) << "the samples say something";
}

// Each glob is compared with as many components as agree, not with the path up to each of its components of
// up to 4,096 bytes: this test would not end.
TEST(NamespaceRulesTest, ManyGlobsAndDeepPath_CostOneComparisonPerGlob) {
  std::vector<std::string> globs;
  for (int i = 0; i < 100'000; ++i) globs.push_back("bucket-" + std::to_string(i) + "/*/cache/*");
  globs.insert(globs.end(), 10'000, "[[:alpha:]]*/tmp");  // can't be taken apart
  const NamespaceRules rules = excluding(globs);
  std::string path = "a";
  while (path.size() + 2 <= path_bytes_max) path += "/a";
  for (int round = 0; round < 20; ++round) {
    EXPECT_FALSE(rules.ignores(path));
    EXPECT_FALSE(rules.ignores("bucket-1/a/b/" + path.substr(0, 4000)));
    EXPECT_TRUE(rules.ignores("bucket-1/a/cache/x/" + path.substr(0, 4000)));
  }
}

TEST(NamespaceRulesTest, S3BucketNames_AreCheckedOnlyIfEnabled) {
  NamespaceRules::Options options;
  EXPECT_FALSE(NamespaceRules(options).ignores("No_Bucket/x"));
  options.s3_bucket_names = true;
  EXPECT_TRUE(NamespaceRules(options).ignores("No_Bucket/x"));
  EXPECT_FALSE(NamespaceRules(options).ignores("bucket-1/No_Bucket"));
}

TEST(NamespaceRulesTest, S3BucketName_IsValidated) {
  for (const std::string& name : {std::string("abc"), std::string("a-b.c"), std::string("1bucket"),
                                  std::string("192.168.1"), std::string(63, 'a')}) {
    EXPECT_TRUE(is_s3_bucket_name(name)) << name;
  }
  for (const std::string& name :
       {std::string("ab"), std::string(64, 'a'), std::string("Abc"), std::string("a_b"), std::string("-abc"),
        std::string("abc-"), std::string(".abc"), std::string("abc."), std::string("a..b"),
        std::string("192.168.1.1"),
        std::string("b\xc3\xbc"
                    "cket"),
        std::string()}) {
    EXPECT_FALSE(is_s3_bucket_name(name)) << name;
  }
}

TEST(NamespaceRulesTest, FingerprintAndDigest_DependOnRulesNotTheirOrder) {
  const std::string plain = NamespaceRules().fingerprint();
  EXPECT_EQ(excluding({"a", "b"}).fingerprint(), excluding({"b", "a"}).fingerprint());
  EXPECT_NE(excluding({"a"}).fingerprint(), plain);
  EXPECT_NE(excluding({"a", "b"}).fingerprint(), excluding({"a"}).fingerprint());
  EXPECT_NE(excluding({"a|1:b"}).fingerprint(), excluding({"a", "b"}).fingerprint());
  EXPECT_NE(NamespaceRules({{}, true}).fingerprint(), plain);
  EXPECT_EQ(excluding({"a", "b"}).digest(), excluding({"b", "a"}).digest());
  EXPECT_NE(excluding({"a"}).digest(), NamespaceRules().digest());
}

}  // namespace
}  // namespace spoor::tracker
