#include <gmock/gmock.h>

#include "tests/config/support.h"

namespace spoor::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(OverrideTest, Override_ReplacesFileValue) {
  const Config config = load_minimal({"node.name=y", "tracker.items=5", "tracker.save_interval=1h"}).value();
  EXPECT_EQ(config.node.name, "y");
  EXPECT_EQ(config.tracker.items, 5U);
  EXPECT_EQ(config.tracker.save_interval, std::chrono::hours(1));
}

TEST(OverrideTest, RepeatedOverride_LastOneApplies) {
  EXPECT_EQ(load_minimal({"tracker.items=5", "tracker.items=6"}).value().tracker.items, 6U);
}

TEST(OverrideTest, TextSetting_TakesValueVerbatim) {
  EXPECT_EQ(load_minimal({"node.name=1"}).value().node.name, "1");
  EXPECT_EQ(load_minimal({"node.name=1.50"}).value().node.name, "1.50");
  EXPECT_EQ(load_minimal({"node.name=true"}).value().node.name, "true");
  EXPECT_EQ(load_minimal({"node.name=null"}).value().node.name, "null");
  EXPECT_EQ(load_minimal({R"(node.name="quoted")"}).value().node.name, "quoted");
}

TEST(OverrideTest, SizeSetting_AcceptsPlainNumber) {
  EXPECT_EQ(load_minimal({"limits.max_body=4096"}).value().limits.max_body_bytes, 4096U);
  EXPECT_EQ(load_minimal({"limits.max_body=4KiB"}).value().limits.max_body_bytes, 4096U);
}

TEST(OverrideTest, ListSetting_IsParsedAsJson) {
  const Config config = load_minimal({R"(drives=["/a","/b"])", R"(listen=[{"address":"127.0.0.1","port":0}])",
                                      "peers.static=[]"})
                            .value();
  EXPECT_THAT(config.drives, ElementsAre("/a", "/b"));
  EXPECT_THAT(config.listen, ElementsAre(Listener{.address = "127.0.0.1", .port = 0}));
  EXPECT_FALSE(config.listen_is_default);
}

TEST(OverrideTest, SectionOverride_KeepsOtherSettings) {
  const Config config = load_minimal({"tracker.items=5", R"(tracker={"history":3})"}).value();
  EXPECT_EQ(config.tracker.items, 5U);
  EXPECT_EQ(config.tracker.history, 3U);
}

TEST(OverrideTest, ValueWithEqualsSign_IsAccepted) {
  EXPECT_EQ(load_minimal({R"(namespace.exclude=["a=b"])"}).value().name_space.exclude.at(0), "a=b");
}

TEST(OverrideTest, UnknownKey_ErrorSuggestsNearestKey) {
  EXPECT_EQ(error_of(load_minimal({"tracker.itmes=5"})),
            "--set: unknown key 'tracker.itmes': did you mean 'tracker.items'?");
  EXPECT_EQ(error_of(load_minimal({"itmes=5"})), "--set: unknown key 'itmes': did you mean 'tracker.items'?");
  EXPECT_EQ(error_of(load_minimal({"tracker.items.more=5"})),
            "--set: unknown key 'tracker.items.more': did you mean 'tracker.items'?");
  EXPECT_THAT(error_of(load_minimal({".=5"})), HasSubstr("unknown key '.'"));
}

TEST(OverrideTest, MalformedOverride_ErrorExplainsForm) {
  EXPECT_EQ(error_of(load_minimal({"tracker.items"})),
            R"(--set: "tracker.items" is wrong: expected key=value in UTF-8, such as tracker.items=500000)");
  EXPECT_THAT(error_of(load_minimal({"=5"})), HasSubstr("expected key=value"));
  EXPECT_THAT(error_of(load_minimal({""})), HasSubstr("expected key=value"));
  EXPECT_THAT(error_of(load_minimal({"node.name=\xff"})), HasSubstr("in UTF-8"));
  EXPECT_EQ(error_of(load_minimal({"tracker.items=many"})),
            R"(--set: tracker.items: "many" is wrong: expected a whole number from 1 to 200000000)");
  EXPECT_EQ(error_of(load_minimal({"drives=/a"})), R"(--set: drives: "/a" is wrong: expected a list in [ ])");
  EXPECT_EQ(error_of(load_minimal({"tracker=5"})), "--set: tracker: expected an object in { }");
  EXPECT_THAT(error_of(load_minimal({R"(tracker={"items":1,"items":2})"})), HasSubstr("expected an object"));
}

TEST(OverrideTest, EmptyNodeName_IsMissing) {
  EXPECT_EQ(error_of(load_minimal({"node.name="})), "node.name is required");
}

TEST(OverrideTest, UnquotedPathInList_IsRefused) {
  EXPECT_EQ(error_of(load_minimal({"drives=[5]"})),
            "--set: drives[0]: 5 is wrong: expected a path in quotes");
}

TEST(OverrideTest, ErrorsInFileAndOverrides_AreReportedTogether) {
  const std::vector<std::string> overrides = {"tracker.history=0", "log.level=loud"};
  const std::string message = error_of(load_text(R"({"drives":["/a"],"nodes":{}})", "spoor.json", overrides));
  EXPECT_THAT(message, HasSubstr("spoor.json: unknown key 'nodes': did you mean 'node'?"));
  EXPECT_THAT(message, HasSubstr("--set: log.level: \"loud\""));
  EXPECT_THAT(message, HasSubstr("node.name is required"));
  EXPECT_THAT(message, HasSubstr("tracker.history: 0 is out of range"));
}

TEST(OverrideTest, InvalidSecret_IsNotShown) {
  EXPECT_THAT(error_of(load_minimal({R"(auth.tokens=["hush"])"})), Not(HasSubstr("hush")));
  EXPECT_THAT(error_of(load_minimal({"auth.tokens=hush"})), Not(HasSubstr("hush")));
  EXPECT_THAT(error_of(load_minimal({"auth=hush"})), Not(HasSubstr("hush")));
}

}  // namespace
}  // namespace spoor::config
