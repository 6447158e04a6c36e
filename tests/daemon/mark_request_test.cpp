#include "daemon/api/mark_batch.h"

#include <gtest/gtest.h>

#include "tests/daemon/read_marks.h"
#include "tests/support/random.h"

namespace spoor::daemon {
namespace {

using tracker::MarkKind;

using Parsed = boost::system::result<ReadMarks, Problem>;

Parsed parse_mark_request(const HttpRequest& request, const tracker::NamespaceRules& rules) {
  return read_marks(read_mark_request, request, rules, tracker::DrivePaths({"/mnt/disk1", "/mnt/disk 2"}));
}

HttpRequest json_request(std::string body) {
  HttpRequest request;
  request.content_type = "application/json";
  request.body = std::move(body);
  return request;
}

HttpRequest text_request(std::string body, std::map<std::string, std::string> query = {}) {
  HttpRequest request;
  request.content_type = "text/plain; charset=utf-8";
  request.body = std::move(body);
  request.query = std::move(query);
  return request;
}

std::vector<std::string> paths_of(const Parsed& parsed) {
  std::vector<std::string> paths;
  if (!parsed) return {"problem: " + parsed.error().code};
  for (const auto& mark : parsed->marks) paths.push_back(mark.path);
  return paths;
}

std::string code_of(const HttpRequest& request) {
  const auto parsed = parse_mark_request(request, {});
  return parsed ? "" : parsed.error().code;
}

using Paths = std::vector<std::string>;

TEST(MarkRequestTest, JsonPaths_AreNormalised) {
  const auto parsed = parse_mark_request(json_request(R"({"paths":["/a//b/","c"],"kind":"tree"})"), {});
  EXPECT_EQ(paths_of(parsed), (Paths{"a/b", "c"}));
  EXPECT_EQ(parsed->marks[0].kind, MarkKind::tree);
}

TEST(MarkRequestTest, MarkKind_NotGiven_IsDir) {
  EXPECT_EQ(parse_mark_request(json_request(R"({"paths":["a"]})"), {})->marks[0].kind, MarkKind::dir);
  EXPECT_EQ(parse_mark_request(text_request("a"), {})->marks[0].kind, MarkKind::dir);
  EXPECT_EQ(parse_mark_request(text_request("a", {{"kind", "file"}}), {})->marks[0].kind, MarkKind::file);
}

TEST(MarkRequestTest, TextBody_OnePathPerLine_LastNewlineIsOptional) {
  EXPECT_EQ(paths_of(parse_mark_request(text_request("a\nb c\n"), {})), (Paths{"a", "b c"}));
  EXPECT_EQ(paths_of(parse_mark_request(text_request("a\nb"), {})), (Paths{"a", "b"}));
  EXPECT_EQ(paths_of(parse_mark_request(text_request(""), {})), Paths{});
  EXPECT_EQ(
      paths_of(parse_mark_request(text_request(std::string("a\nb\0c\xff", 6), {{"delimiter", "nul"}}), {})),
      (Paths{"a\nb", "c\xff"}));
  EXPECT_EQ(paths_of(parse_mark_request(json_request(R"({"paths":[]})"), {})), Paths{});
}

std::string path_of_over_4096_bytes() {
  std::string path = "a";
  while (path.size() <= 4096) path += "/a";
  return path;
}

TEST(MarkRequestTest, EachError_HasItsCode) {
  const std::pair<const char*, std::vector<HttpRequest>> refused[] = {
      {"invalid_json",
       {json_request(""), json_request("{"), json_request("{\"paths\":[\"a\""),
        json_request("{\"paths\":[\"a\"]} x"), json_request("nope"), json_request("{\"paths\":[\"\xff\"]}")}},
      {"invalid_request",
       {json_request("[]"), json_request("{}"), json_request("7"), json_request("null"),
        json_request(R"({"paths":"a"})"), json_request(R"({"paths":[1]})"),
        json_request(R"({"paths":[["a"]]})"), json_request(R"({"paths":[{}]})"),
        json_request(R"({"paths":["a"],"kind":"x"})"), json_request(R"({"paths":["a"],"kind":7})"),
        json_request(R"({"paths":["a"],"extra":1})"), json_request(R"({"paths":["a"],"paths":["b"]})"),
        json_request(R"({"paths":["a"],"kind":"dir","kind":"tree"})"), json_request(R"({"paths":null})"),
        text_request("a", {{"kind", "x"}}), text_request("a", {{"delimiter", "x"}})}},
      // ancestor 17: `..` climbed out of the bucket.
      {"invalid_path",
       {json_request(R"({"paths":[""]})"), json_request(R"({"paths":["/"]})"),
        json_request(R"({"paths":["a\u0000b"]})"), json_request(R"({"paths":["bucket/../other"]})"),
        text_request("a\n\nb")}},
      {"path_too_long", {text_request(std::string(256, 'a')), text_request(path_of_over_4096_bytes())}}};
  for (const auto& [code, requests] : refused) {
    for (const HttpRequest& request : requests)
      EXPECT_EQ(code_of(request), code) << request.body.substr(0, 99);
  }
}

TEST(MarkRequestTest, InvalidPaths_ErrorNamesTheFirst) {
  for (const HttpRequest& request :
       {json_request(R"({"paths":["x","a/..","b/.."]})"), text_request("x\na/..\nb/..\n")}) {
    const Problem problem = parse_mark_request(request, {}).error();
    EXPECT_EQ(problem.index, 1U);
    EXPECT_EQ(problem.path, "a/..");
  }
}

// Large ones are looked at before they are parsed: the parser would take many times their size.
TEST(MarkRequestTest, LargeInvalidBody_HasTheSameErrorCode) {
  constexpr std::size_t large = std::size_t{2} << 20U;
  std::string numbers = R"({"paths":[0)";
  while (numbers.size() < large) numbers += ",0";
  EXPECT_EQ(code_of(json_request(numbers)), "invalid_json");
  EXPECT_EQ(code_of(json_request(numbers + "]}")), "invalid_request");
  EXPECT_EQ(code_of(json_request(std::string(large, '['))), "invalid_json");
  EXPECT_EQ(code_of(json_request(std::string(large, 'x'))), "invalid_json");
}

TEST(MarkRequestTest, MarkReader_Reused_KeepsNothingOfEarlierRequests) {
  const tracker::NamespaceRules rules;
  const tracker::DrivePaths drive_paths({"/mnt/disk1", "/mnt/disk 2"});
  MarkBatch batch(rules, drive_paths);
  const auto read = [&](const HttpRequest& request) {
    std::vector<std::string> paths;
    const auto problem = read_mark_request(request, batch);
    if (!problem) {
      for (const tracker::Mark& mark : take_marks(batch).marks) paths.push_back(mark.path);
    }
    paths.push_back(problem ? problem->code : std::to_string(batch.counts().ignored));
    batch.clear();
    return paths;
  };
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(read(json_request(R"({"paths":["a","b/","c","x/.."],"kind":"tree"})")), Paths{"invalid_path"});
    EXPECT_EQ(read(text_request("a\n.spoor\n\n")), Paths{"invalid_path"});
    EXPECT_EQ(read(json_request(R"({"paths":["long/enough/for/memory/of/its/own",".spoor"]})")),
              (Paths{"long/enough/for/memory/of/its/own", "1"}));
    EXPECT_EQ(read(text_request("d//e\nf")), (Paths{"d/e", "f", "0"}));
    EXPECT_EQ(read(json_request(R"({"paths":[]})")), Paths{"0"});
  }
}

TEST(MarkRequestTest, DriveNamed_MarksAreForItAlone) {
  const tracker::NamespaceRules rules({.exclude = {"*.tmp"}, .s3_bucket_names = true});
  const tracker::DrivePaths drive_paths({"/mnt/disk1"});
  MarkBatch batch(rules, drive_paths,
                  [](const std::string& drive) { return drive == "/mnt/disk1" ? "9f1c" : ""; });
  const auto read = [&](const std::string& drive) {
    HttpRequest request = text_request("photos/a\nx.tmp\nNo-Bucket/b\n");
    request.query["drive"] = drive;
    EXPECT_FALSE(read_mark_request(request, batch));
    Paths paths;
    for (const tracker::Mark& mark : take_marks(batch).marks) paths.push_back(mark.path);
    EXPECT_EQ(batch.counts().ignored, 2U) << "the rules are for the path below the drive";
    batch.clear();
    return paths;
  };
  EXPECT_EQ(read("/mnt/other"), Paths{"photos/a"}) << "without an id, for all drives";
  EXPECT_EQ(read("/mnt/disk1"), Paths{".spoor:/9f1c/photos/a"});
  EXPECT_FALSE(read_mark_request(text_request("photos/a"), batch));
  EXPECT_EQ(take_marks(batch).marks[0].path, "photos/a") << "of the next request";
}

TEST(MarkRequestTest, PathOnADriveOfTheNode_RefusesTheWholeRequest) {
  for (const HttpRequest& request : {json_request(R"({"paths":["a","/mnt/disk1/photos/x"]})"),
                                     text_request("a\n/mnt/disk1/photos/x\nb")}) {
    const auto refused = parse_mark_request(request, {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, "invalid_path");
    EXPECT_EQ(refused.error().index, 1U);
    EXPECT_EQ(refused.error().path, "/mnt/disk1/photos/x");
    EXPECT_EQ(refused.error().detail,
              "'/mnt/disk1/photos/x' is on the drive /mnt/disk1; give the path below it: 'photos/x'");
  }
  EXPECT_TRUE(parse_mark_request(text_request("/photos/x\nmnt/disk1/photos"), {}));
}

// A writer that names a wrong mount point lost its changes.
TEST(MarkRequestTest, AbsolutePath_IsMarkedBelowItsDriveOrRefused) {
  const std::map<std::string, std::string> absolute{{"absolute", "true"}};
  EXPECT_EQ(paths_of(parse_mark_request(text_request("/mnt/disk1/photos/x\nphotos/y", absolute), {})),
            (Paths{"photos/x", "photos/y"}));
  const auto refused = parse_mark_request(text_request("a\n/mnt/disk10/photos", absolute), {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, "invalid_path");
  EXPECT_EQ(refused.error().index, 1U);
  EXPECT_EQ(refused.error().detail, "'/mnt/disk10/photos' is on none of the drives of this node");
  EXPECT_EQ(code_of(text_request("a", {{"absolute", "1"}})), "invalid_request");
}

// It would be acknowledged, and something else marked than was meant.
TEST(MarkRequestTest, UnknownParameterOrEncoding_IsRefused) {
  EXPECT_EQ(code_of(text_request("a", {{"knid", "tree"}})), "invalid_request");
  HttpRequest request = json_request(R"({"paths":["a"]})");
  request.query = {{"kind", "tree"}};
  EXPECT_EQ(code_of(request), "invalid_request");
  request = text_request("a");
  request.content_encoding = "gzip";
  EXPECT_EQ(code_of(request), "unsupported_media_type");
  request.content_encoding = "Identity";
  EXPECT_EQ(code_of(request), "");
}

TEST(MarkRequestTest, OtherMediaTypes_AreRefused) {
  HttpRequest request = json_request("{}");
  for (const char* type : {"", "text/html", "application/jsonx"}) {
    request.content_type = type;
    EXPECT_EQ(code_of(request), "unsupported_media_type") << type;
  }
  request.content_type = "APPLICATION/JSON ;charset=utf-8";
  EXPECT_EQ(code_of(request), "invalid_request");              // read as JSON
  request.content_type = "application/x-www-form-urlencoded";  // of curl -d
  EXPECT_EQ(code_of(request), "invalid_request");
}

// ancestor 7: reserved names were ignored only when debugging was on.
TEST(MarkRequestTest, ReservedAndExcludedPaths_AreIgnoredAndCounted) {
  const tracker::NamespaceRules rules({.exclude = {"*.tmp"}});
  const auto parsed = parse_mark_request(text_request(".spoor/x\n.minio.sys/y\na/b.tmp\na/b\n"), rules);
  EXPECT_EQ(paths_of(parsed), (Paths{"a/b"}));
  EXPECT_EQ(parsed->ignored, 3U);
}

TEST(MarkRequestTest, RandomBodies_YieldOnlyNormalisedPaths) {
  SPOOR_RANDOM(random);
  const std::string seed = R"({"paths":["a/b","..",".","c\u0000","\ud800"],"kind":"dir"})";
  for (int round = 0; round < 20'000; ++round) {
    std::string body = seed;
    for (std::uint64_t i = random.between(1, 6); i > 0; --i) body[random.below(body.size())] = random.byte();
    auto request = random.one_in(2)
                       ? json_request(body)
                       : text_request(body, {{"delimiter", random.one_in(2) ? "nul" : "newline"}});
    const auto parsed = parse_mark_request(request, {});
    if (!parsed) continue;
    for (const auto& mark : parsed->marks) ASSERT_EQ(*tracker::normalise_path(mark.path), mark.path);
  }
}

}  // namespace
}  // namespace spoor::daemon
