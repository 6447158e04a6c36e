#include "daemon/api/mark_batch.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/daemon/read_marks.h"

namespace spoor::daemon {
namespace {

using nlohmann::json;
using tracker::MarkKind;
using Paths = std::vector<std::string>;
using Parsed = boost::system::result<ReadMarks, Problem>;

HttpRequest request_of(std::string body) {
  HttpRequest request;
  request.content_type = "application/json";
  request.body = std::move(body);
  return request;
}

Parsed parse_s3_events(const HttpRequest& request, const tracker::NamespaceRules& rules,
                       const tracker::DrivePaths& drive_paths = {}) {
  return read_marks(read_s3_events, request, rules, drive_paths);
}

Parsed parse(std::string body, std::map<std::string, std::string> query = {}) {
  HttpRequest request = request_of(std::move(body));
  request.query = std::move(query);
  return parse_s3_events(request, {});
}

json event(const std::string& name, const std::string& bucket, const std::string& key) {
  return {{"eventName", name}, {"s3", {{"bucket", {{"name", bucket}}}, {"object", {{"key", key}}}}}};
}

json from(const std::string& source, json event) {
  event["eventSource"] = source;
  return event;
}

std::string notification(json::array_t records) {
  return json{{"Records", std::move(records)}}.dump(-1, ' ', false, json::error_handler_t::replace);
}

Paths paths_of(const Parsed& parsed) {
  if (!parsed) return {"problem: " + parsed.error().code + ": " + parsed.error().detail};
  Paths paths;
  for (const auto& mark : parsed->marks) paths.push_back(mark.path);
  return paths;
}

Paths paths_of(json::array_t records) { return paths_of(parse(notification(std::move(records)))); }

Paths marked_by(const std::string& name) { return paths_of({event(name, "b", "k")}); }

std::string code_of(const Parsed& parsed) { return parsed ? "" : parsed.error().code; }

std::string sample(const std::string& name) {
  std::ifstream file(std::string(S3_EVENTS "/") + name);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(S3EventsTest, MinioKey_IsDecodedWhole) {
  EXPECT_EQ(paths_of(parse(sample("minio_put.json"))), (Paths{"photos/2023/summer trip/a+b.jpg"}));
}

TEST(S3EventsTest, AwsKey_WithPlainSlashes_IsDecoded) {
  EXPECT_EQ(paths_of(parse(sample("aws_put.json"))),
            (Paths{"amzn-s3-demo-bucket/garden/red flower+1.jpg", "amzn-s3-demo-bucket/garden/old"}));
}

// A plus or a percent sign in it would otherwise be read as something else, and the object be missed.
TEST(S3EventsTest, CephKey_IsNotDecoded) {
  EXPECT_EQ(paths_of(parse(sample("ceph_put.json"))), (Paths{"media/films/100% real+true.mkv"}));
  EXPECT_EQ(paths_of(parse(sample("ceph_removed.json"))), (Paths{"media/films/old.mkv"}));
}

TEST(S3EventsTest, CephKey_MayBeEncoded_IsMarkedInBothReadings) {
  const auto parsed = parse(notification({from("ceph:s3", event("ObjectCreated:Put", "b", "x%2Fy+z"))}));
  EXPECT_EQ(paths_of(parsed), (Paths{"b/x%2Fy+z", "b/x/y z"}));
  EXPECT_EQ(parsed->further, 1U);
  const std::string name(200, 'n');
  EXPECT_EQ(paths_of({from("ceph:s3", event("ObjectCreated:Put", "b", name + "%2F" + name))}),
            (Paths{"b", "b/" + name + "/" + name}))
      << "as it is, it would be no path";
  EXPECT_EQ(paths_of(parse(R"({"Records":[{"eventName":"ObjectCreated:Put","s3":{"object":{"key":"a+b"},)"
                           R"("bucket":{"name":"b"}},"eventSource":"ceph:s3"}]})")),
            (Paths{"b/a+b", "b/a b"}))
      << "the source may be the last member";
}

// MinIO keeps it in a directory of another name.
TEST(S3EventsTest, MinioKey_EndsWithASlash_MarksBothDirectoryNames) {
  const auto parsed = parse(notification({from("minio:s3", event("s3:ObjectCreated:Put", "b", "a%2Fd%2F"))}),
                            {{"kind", "file"}});
  EXPECT_EQ(paths_of(parsed), (Paths{"b/a/d", "b/a/d__XLDIR__"}));
  EXPECT_EQ(parsed->marks[1].kind, MarkKind::dir) << "it is a directory, whatever else objects are";
  EXPECT_EQ(parsed->further, 1U);
  EXPECT_EQ(paths_of({from("aws:s3", event("ObjectCreated:Put", "b", "a/d/"))}), (Paths{"b/a/d"}));
}

TEST(S3EventsTest, MinioBucketEvent_MarksTheBucket) {
  EXPECT_EQ(paths_of(parse(sample("minio_bucket_created.json"))), (Paths{"photos"}));
  EXPECT_EQ(paths_of(parse(R"({"Records":[{"eventName":"s3:BucketRemoved:*","s3":{"bucket":{"name":"b"}}}]})",
                           {{"kind", "file"}})),
            (Paths{"b"}));
}

TEST(S3EventsTest, AwsTestMessage_MarksNothing) {
  const auto parsed = parse(sample("aws_test.json"));
  EXPECT_EQ(paths_of(parsed), Paths{});
  EXPECT_EQ(parsed->ignored, 1U);
}

TEST(S3EventsTest, EveryChangingEvent_MarksTheObject) {
  for (const std::string name : {"ObjectCreated:Put",
                                 "ObjectCreated:CompleteMultipartUpload",
                                 "ObjectCreated:PutTagging",
                                 "ObjectCreated:SomethingNew",
                                 "ObjectCreated:*",
                                 "ObjectRemoved:Delete",
                                 "ObjectRemoved:DeleteMarkerCreated",
                                 "ObjectRemoved:NoOP",
                                 "ObjectRemoved:DeleteAllVersions",
                                 "ObjectRestore:Post",
                                 "ObjectRestore:Completed",
                                 "ObjectRestore:Delete",
                                 "LifecycleExpiration:Delete",
                                 "LifecycleDelMarkerExpiration:Delete",
                                 "LifecycleTransition",
                                 "ObjectLifecycle:Expiration:Current",
                                 "ObjectLifecycle:Transition:NonCurrent",
                                 "ObjectSynced:Create",
                                 "ObjectTagging:Put",
                                 "ObjectTagging:Delete",
                                 "ObjectAcl:Put",
                                 "IntelligentTiering",
                                 "ObjectTransition:Complete",
                                 "Replication:OperationCompletedReplication",
                                 "ReducedRedundancyLostObject",
                                 "Scanner:ManyVersions"}) {
    EXPECT_EQ(marked_by(name), (Paths{"b/k"})) << name;
    EXPECT_EQ(marked_by("s3:" + name), (Paths{"b/k"})) << name;
  }
}

TEST(S3EventsTest, ReadOnlyAndUnknownEvents_AreIgnoredAndCounted) {
  auto parsed =
      parse(notification({event("s3:ObjectAccessed:Get", "b", "k"), event("ObjectAccessed:Head", "b", "k"),
                          event("s3:TestEvent", "b", "k"), event("ObjectRemoved:Delete", "b", "gone")}));
  EXPECT_EQ(paths_of(parsed), (Paths{"b/gone"}));
  EXPECT_EQ(parsed->ignored, 3U);
  EXPECT_EQ(parsed->unknown_events, 0U);
  parsed =
      parse(notification({event("s3:Some:Thing", "b", "k"), event("", "b", "k"),
                          event("objectcreated:put", "b", "k"), event("s3:s3:ObjectCreated:Put", "b", "k")}));
  EXPECT_EQ(paths_of(parsed), Paths{});
  EXPECT_EQ(parsed->ignored, 4U);
  EXPECT_EQ(parsed->unknown_events, 4U);
  EXPECT_EQ(parsed->unknown_event, "s3:Some:Thing");
}

TEST(S3EventsTest, IgnoredEvent_OfAnyShape_IsAccepted) {
  const auto parsed =
      parse(R"({"Records":[{"eventName":"s3:ObjectAccessed:Get","s3":7},{"eventName":"New:Kind"}]})");
  EXPECT_EQ(paths_of(parsed), Paths{});
  EXPECT_EQ(parsed->ignored, 2U);
}

TEST(S3EventsTest, MarkKind_NotGiven_IsDir) {
  const std::string body = notification({event("ObjectCreated:Put", "b", "k")});
  EXPECT_EQ(parse(body)->marks[0].kind, MarkKind::dir);
  EXPECT_EQ(parse(body, {{"kind", "file"}})->marks[0].kind, MarkKind::file);
  EXPECT_EQ(code_of(parse(body, {{"kind", "tree"}})), "invalid_request");
  EXPECT_EQ(code_of(parse(body, {{"kind", "x"}})), "invalid_request");
  EXPECT_EQ(code_of(parse(body, {{"knid", "file"}})), "invalid_request");
}

TEST(S3EventsTest, Keys_AreDecodedOnce) {
  EXPECT_EQ(paths_of({event("ObjectCreated:Put", "b", "a%252Fb")}), (Paths{"b/a%2Fb"}));
  EXPECT_EQ(paths_of({event("ObjectCreated:Put", "b", "%ff%C3%A4+%2B")}), (Paths{"b/\xff\xc3\xa4 +"}));
  EXPECT_EQ(paths_of({event("ObjectCreated:Put", "b", "/a//b/./c/")}), (Paths{"b/a/b/c"}));
}

std::string trees_of(const Parsed& parsed) {
  if (!parsed) return "problem: " + parsed.error().detail;
  std::string trees;
  for (const auto& mark : parsed->marks) {
    EXPECT_EQ(mark.kind, MarkKind::tree) << mark.path;
    trees += mark.path + ' ';
  }
  return trees;
}

std::string tree_for(const std::string& key, const std::string& source = "aws:s3") {
  return trees_of(
      parse(notification({from(source, event("ObjectCreated:Put", "b", key))}), {{"kind", "file"}}));
}

// It was refused, and with it all that came behind: its sender repeats the event until it is taken.
TEST(S3EventsTest, InvalidKey_SetsATreeMarkOnTheDeepestDirectoryAbove) {
  const std::string large(256, 'k');
  for (const auto& [key, tree] : std::map<std::string, std::string>{
           {"", "b "},
           {"/", "b "},
           {".", "b "},
           {"./", "b "},
           {"..", "b "},
           {"../..", "b "},
           {"../../other/x", "b "},
           {"a/../c", "b "},
           {"a/c/../d", "b/a "},
           {"a/c/..", "b/a "},
           {"a/c/../../../d", "b "},
           {large, "b "},
           {"a/" + large, "b/a "},
           {"a//c/./" + large + "/d/e", "b/a/c "},
           {"a/" + large + "/../../d", "b "},
           {std::string("a\0", 2), "b "},
           {std::string("a/c/x\0y/z", 9), "b/a/c "},
       }) {
    EXPECT_EQ(tree_for(key, "ceph:s3"), tree) << key;
    if (key.find('\0') != std::string::npos) continue;  // comes encoded, if at all
    EXPECT_EQ(tree_for(key), tree) << key;
  }
  EXPECT_EQ(tree_for("a%2F..%2Fb"), "b ");
  EXPECT_EQ(tree_for("a%2Fc%00"), "b/a ");
  std::string deep = "c";
  while (deep.size() <= tracker::path_bytes_max) deep += "/c";
  EXPECT_GT(tree_for(deep).size(), tracker::path_bytes_max - 2) << "as deep as a path can be";
  EXPECT_LE(tree_for(deep).size(), tracker::path_bytes_max + 1);
}

// JSON has none of them, but stores pass on what their clients sent.
TEST(S3EventsTest, NonUtf8Key_SetsATreeMarkOnTheDeepestDirectoryAbove) {
  const std::string body = notification({from("ceph:s3", event("ObjectCreated:Put", "b", "a/c/KEY/z"))});
  for (const char* key :
       {"\xff", "x\xfcy", "\xff\xfe\xfd", "\xc3", "\xed\xa0\x80", "back\\\\\xff", "\\\\u0000\xff"}) {
    std::string with_key = body;
    with_key.replace(with_key.find("KEY"), 3, key);
    EXPECT_EQ(trees_of(parse(with_key)), "b/a/c ") << testing::PrintToString(key);
  }
}

TEST(S3EventsTest, NonUtf8BytesOutsideTheKey_ChangeNothing) {
  json record = from("ceph:s3", event("ObjectCreated:Put", "b", "a/k"));
  record["s3"]["object"]["metadata"] = {{{"key", "x-amz-meta-author"}, {"val", "MUELLER"}}};
  std::string body = notification({record});
  body.replace(body.find("MUELLER"), 7, "M\xfcller");
  EXPECT_EQ(paths_of(parse(body)), Paths{"b/a/k"});
}

// Whether such a key was encoded at all is not known: what is above is the same in both readings.
TEST(S3EventsTest, KeyWithBrokenEscape_SetsATreeMarkAboveBothReadings) {
  for (const auto& [key, tree] : std::map<std::string, std::string>{{"%", "b "},
                                                                    {"a%2", "b "},
                                                                    {"a%zz", "b "},
                                                                    {"%%20", "b "},
                                                                    {"a/c/x%2G", "b/a/c "},
                                                                    {"a/c+d/x%2", "b/a "},
                                                                    {"a%2Fc/x%", "b "},
                                                                    {"a/../x%", "b "}}) {
    EXPECT_EQ(tree_for(key), tree) << key;
  }
}

TEST(S3EventsTest, InvalidKey_IsCountedAndRefusesNoOther) {
  auto parsed =
      parse(notification({event("ObjectCreated:Put", "b", "good"), event("ObjectRemoved:Delete", "b", ".."),
                          event("ObjectCreated:Put", "b", "d/%"), event("ObjectCreated:Put", "b", "last")}));
  EXPECT_EQ(paths_of(parsed), (Paths{"b/good", "b", "b/d", "b/last"}));
  EXPECT_EQ(parsed->marks[0].kind, MarkKind::dir);
  EXPECT_EQ(parsed->invalid_keys, 2U);
  EXPECT_EQ(parsed->ignored, 0U);
  EXPECT_EQ(parsed->further, 0U);
  EXPECT_EQ(parsed->invalid_key, "b/..");
  EXPECT_EQ(parsed->invalid_key_mark, "b");
  EXPECT_EQ(parse(notification({event("ObjectCreated:Put", "b", "good")}))->invalid_keys, 0U);
}

TEST(S3EventsTest, InvalidKey_IsEscapedInTheMessage) {
  const auto parsed =
      parse(notification({event("ObjectCreated:Put", "b", "../x\n2026-01-01 forged \x1b[2J")}));
  EXPECT_EQ(parsed->invalid_key, "b/../x\\x0a2026-01-01 forged \\x1b[2J");
  EXPECT_LT(
      parse(notification({event("ObjectCreated:Put", "b", std::string(100'000, 'k'))}))->invalid_key.size(),
      300U);
}

// Requests of a real RGW, a line each: of awkward keys, metadata in any encoding, copies, uploads in parts,
// versions, tenants.
TEST(S3EventsTest, RecordedCephRequests_AreAcceptedAndMarkTheirPaths) {
  std::istringstream bodies(sample("ceph_rgw_16_2_15.bodies"));
  const json marks = json::parse(sample("ceph_rgw_16_2_15_marks.json"));
  for (const auto& [name, expected] : marks.items()) {
    std::string body;
    ASSERT_TRUE(std::getline(bodies, body)) << name;
    const auto parsed = parse(body);
    ASSERT_TRUE(parsed) << name << ": " << parsed.error().detail;
    const auto kind = tracker::parse_mark_kind(expected["kind"].get<std::string>());
    const bool is_marked = std::ranges::any_of(parsed->marks, [&](const auto& mark) {
      return mark.path == expected["path"].get<std::string>() && mark.kind == kind;
    });
    EXPECT_TRUE(is_marked) << name;
    EXPECT_EQ(parsed->invalid_keys, kind == MarkKind::tree ? 1U : 0U) << name;
  }
}

// Buckets of the same name, of two tenants of a store.
TEST(S3EventsTest, Prefix_IsPutBeforeEveryBucket) {
  const std::string body =
      notification({event("ObjectCreated:Put", "b", "k"), event("s3:BucketCreated:*", "b", ""),
                    event("ObjectCreated:Put", "b", ".."), event("ObjectCreated:Put", "b", "a/../../../x")});
  EXPECT_EQ(paths_of(parse(body, {{"prefix", "tenant-1"}})),
            (Paths{"tenant-1/b/k", "tenant-1/b", "tenant-1/b", "tenant-1/b"}));
  EXPECT_EQ(paths_of(parse(body, {{"prefix", "/rgw//tenant-1/"}, {"kind", "file"}}))[0], "rgw/tenant-1/b/k");
  for (const std::string& bad : {std::string(), std::string("/"), std::string("."), std::string(".."),
                                 std::string("a/../b"), std::string(256, 'p'), std::string("a\0b", 3)}) {
    EXPECT_EQ(code_of(parse(body, {{"prefix", bad}})), "invalid_request") << bad;
  }
  std::string deep = "p";
  while (deep.size() <= 1024) deep += "/p";
  EXPECT_EQ(code_of(parse(body, {{"prefix", deep}})), "invalid_request");
  HttpRequest request = request_of(body);
  request.query = {{"prefix", "/mnt/disk1/tenant"}};
  EXPECT_EQ(parse_s3_events(request, {}, tracker::DrivePaths({"/mnt/disk1"})).error().detail,
            "'prefix': '/mnt/disk1/tenant' is on the drive /mnt/disk1; give the path below it: 'tenant'");
  request.query = {{"prefix", "/tenant"}};
  EXPECT_TRUE(parse_s3_events(request, {}, tracker::DrivePaths({"/mnt/disk1"})));
}

// "./key" would mark a path without the bucket.
TEST(S3EventsTest, BucketName_NotOneComponent_IsInvalidPath) {
  for (const char* bucket : {"", ".", "..", "a/b", "/a", "a/", "../a"}) {
    EXPECT_EQ(code_of(parse(notification({event("ObjectCreated:Put", bucket, "k")}))), "invalid_path")
        << bucket;
    EXPECT_EQ(code_of(parse(notification({event("s3:BucketCreated:*", bucket, "")}))), "invalid_path")
        << bucket;
  }
  EXPECT_EQ(paths_of({event("ObjectCreated:Put", "b%2F+", "k")}), (Paths{"b%2F+/k"})) << "it is not encoded";
}

TEST(S3EventsTest, RecordOfWrongShape_ErrorHasItsIndex) {
  const std::string good = event("ObjectCreated:Put", "b", "k").dump();
  for (const char* bad :
       {"1", "null", "\"x\"", "[]", R"([{"eventName":"ObjectCreated:Put"}])", "{}",
        R"({"eventName":"ObjectCreated:Put"})",
        R"({"eventName":7,"s3":{"bucket":{"name":"b"},"object":{"key":"k"}}})",
        R"({"s3":{"bucket":{"name":"b"},"object":{"key":"k"}}})",
        R"({"eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"b"}}})",
        R"({"eventName":"ObjectCreated:Put","s3":{"object":{"key":"k"}}})",
        R"({"eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"b"},"object":{"key":1}}})",
        R"({"eventName":"ObjectCreated:Put","s3":{"bucket":{"name":["b"]},"object":{"key":"k"}}})",
        R"({"eventName":"ObjectCreated:Put","s3":{"bucket":"b","object":{"key":"k"}}})",
        R"({"eventName":"ObjectCreated:Put","s3":[{"bucket":{"name":"b"},"object":{"key":"k"}}]})",
        R"({"eventName":"s3:BucketCreated:*","s3":{"object":{"key":""}}})"}) {
    const auto parsed = parse("{\"Records\":[" + good + "," + bad + "]}");
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().code, "invalid_request") << bad;
    EXPECT_EQ(parsed.error().index, 1U) << bad;
    EXPECT_NE(parsed.error().detail.find("Records[1]"), std::string::npos) << parsed.error().detail;
  }
}

// Which of the two is meant nobody knows: the other one would be missed.
TEST(S3EventsTest, DuplicateJsonMembers_AreRefused) {
  const std::string record = event("ObjectCreated:Put", "b", "k").dump();
  const auto in_record = [](const std::string& members) { return "{\"Records\":[{" + members + "}]}"; };
  for (const std::string& body :
       {"{\"Records\":[" + record + "],\"Records\":[]}",
        in_record(R"("eventName":"ObjectCreated:Put","eventName":"ObjectAccessed:Get",)"
                  R"("s3":{"bucket":{"name":"b"},"object":{"key":"k"}})"),
        in_record(R"("eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"b"},"object":{"key":"k"}},)"
                  R"("s3":{"object":{"key":"l"}})"),
        in_record(R"("eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"b"},)"
                  R"("object":{"key":"k","key":"l"}})"),
        in_record(R"("eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"b","name":"c"},)"
                  R"("object":{"key":"k"}})"),
        in_record(R"("eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"b"},)"
                  R"("object":{"key":"k"},"object":{"key":"l"}})"),
        in_record(R"("eventSource":"ceph:s3","eventSource":"aws:s3","eventName":"ObjectCreated:Put",)"
                  R"("s3":{"bucket":{"name":"b"},"object":{"key":"k"}})")}) {
    EXPECT_EQ(code_of(parse(body)), "invalid_request") << body;
  }
}

TEST(S3EventsTest, BodyIsNoNotification_IsRefused) {
  for (const char* body : {"[]", "7", "null", "\"x\"", "{}", R"({"Records":7})", R"({"Records":null})",
                           R"({"Records":{}})", R"({"Records":"x"})", R"({"Event":"s3:ObjectCreated:Put"})",
                           R"({"Event":{"Records":[]}})", R"([{"Records":[]}])"}) {
    EXPECT_EQ(code_of(parse(body)), "invalid_request") << body;
  }
  for (const char* body : {"", "{", R"({"Records":[)", R"({"Records":[]} x)", "nope", "\xff",
                           "{\"Records\":[],\"x\":\"\\\xff\"}"}) {
    EXPECT_EQ(code_of(parse(body)), "invalid_json") << body;
  }
  EXPECT_EQ(paths_of(parse(R"({"Records":[]})")), Paths{});
}

TEST(S3EventsTest, UnknownJsonMembers_AreSkipped) {
  EXPECT_EQ(paths_of(parse(
                R"({"a":{"Records":[{"eventName":"x"}],"Records":1},)"
                R"("Records":[{"x":[{"eventName":1},[],{}],"eventName":"ObjectCreated:Put","y":null,"z":1e9,)"
                R"("s3":{"u":{"bucket":{"name":"no"}},"bucket":{"v":{"name":"no"},"name":"b"},)"
                R"("object":{"w":[{"key":"no"}],"key":"k"},"t":true}}],"c":[[{"Records":[]}]]})")),
            (Paths{"b/k"}));
}

TEST(S3EventsTest, JsonNestingTooDeep_IsRefused) {
  const auto nested = [](std::size_t depth) {
    return "{\"Records\":[],\"x\":" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_EQ(code_of(parse(nested(63))), "");
  EXPECT_EQ(code_of(parse(nested(64))), "invalid_request");
  EXPECT_EQ(code_of(parse(nested(4'000'000))), "invalid_request");
  EXPECT_EQ(code_of(parse(std::string(8'000'000, '['))), "invalid_request");
}

TEST(S3EventsTest, ReservedAndExcludedPaths_AreIgnoredAndCounted) {
  const tracker::NamespaceRules rules({.exclude = {"*.tmp"}});
  const auto parsed = parse_s3_events(
      request_of(notification(
          {event("ObjectCreated:Put", ".minio.sys", "x"), event("ObjectCreated:Put", "b", "a.tmp"),
           event("s3:BucketCreated:*", ".spoor", ""), event("ObjectCreated:Put", "b", "a"),
           event("ObjectCreated:Put", "b", "a.tmp/" + std::string(256, 'k')),
           from("ceph:s3", event("ObjectCreated:Put", "b", "a%2Etmp"))})),
      rules);
  EXPECT_EQ(paths_of(parsed), (Paths{"b/a", "b/a%2Etmp"}));
  EXPECT_EQ(parsed->ignored, 4U);
  EXPECT_EQ(parsed->further, 0U);
  EXPECT_EQ(parsed->invalid_keys, 0U);
  EXPECT_EQ(parse(notification({event("ObjectCreated:Put", "b", "k")}), {{"prefix", ".minio.sys"}})->ignored,
            1U);
}

TEST(S3EventsTest, OtherMediaTypeOrEncoding_IsRefused) {
  HttpRequest request = request_of(R"({"Records":[]})");
  for (const char* type : {"text/plain", "application/x-www-form-urlencoded", "application/jsonx"}) {
    request.content_type = type;
    EXPECT_EQ(code_of(parse_s3_events(request, {})), "unsupported_media_type") << type;
  }
  for (const char* type : {"", "APPLICATION/JSON ;charset=utf-8"}) {
    request.content_type = type;
    EXPECT_EQ(code_of(parse_s3_events(request, {})), "") << type;
  }
  request.content_encoding = "gzip";
  EXPECT_EQ(code_of(parse_s3_events(request, {})), "unsupported_media_type");
}

}  // namespace
}  // namespace spoor::daemon
