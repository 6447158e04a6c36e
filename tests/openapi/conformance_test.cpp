// The check itself: it must see made-up violations, or it would prove nothing about the daemon.
#include "tests/openapi/conformance.h"

#include <gmock/gmock.h>

namespace spoor::openapi {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const char* const text = R"({
  "paths": {
    "/a": {
      "get": {
        "security": [{"token": ["read"]}],
        "responses": {
          "200": {"content": {"application/json": {"schema": {
            "type": "object", "required": ["n"], "additionalProperties": false,
            "properties": {"n": {"type": "integer"}}}}}},
          "503": {
            "headers": {"Retry-After": {"required": true, "schema": {"type": "integer", "minimum": 1}}},
            "content": {"application/problem+json": {"schema": {
              "allOf": [{"$ref": "#/components/schemas/Problem"},
                        {"properties": {"code": {"enum": ["overloaded", "not_durable"]}}}]}}}}}},
      "post": {
        "security": [],
        "requestBody": {"content": {"application/json": {"schema": {"type": "array"}}}},
        "responses": {"200": {"content": {"text/plain": {"schema": {"type": "string"}}}}}}}},
  "x-any-other-request": {"security": [], "responses": {"204": {"headers": {"Allow": {"schema": {"type": "string"}}}}}},
  "components": {"schemas": {"Problem": {
    "type": "object", "required": ["status", "code"], "additionalProperties": false,
    "properties": {"status": {"type": "integer"}, "code": {"enum": ["overloaded", "not_durable", "timeout"]}}}}}
})";

class ConformanceTest : public testing::Test {
 protected:
  static Answer answer(unsigned status, const std::string& type, const std::string& body) {
    Answer made{status, {{"date", "now"}, {"content-length", std::to_string(body.size())}}, body};
    if (!type.empty()) made.headers["content-type"] = type;
    return made;
  }
  static Answer problem(unsigned status, const std::string& code) {
    const json body{{"status", status}, {"code", code}};
    Answer made = answer(status, "application/problem+json", body.dump());
    made.headers["retry-after"] = "1";
    return made;
  }

  const Request get_{"GET", "/a?x=y"};
  const Description description_{json::parse(text)};
  Conformance conformance_{description_};
};

TEST_F(ConformanceTest, DescribedResponse_Passes) {
  EXPECT_THAT(conformance_.check(get_, answer(200, "application/json", R"({"n":1})")), IsEmpty());
  EXPECT_THAT(conformance_.check(get_, problem(503, "overloaded")), IsEmpty());
}

TEST_F(ConformanceTest, UndescribedStatus_IsReported) {
  EXPECT_THAT(conformance_.check(get_, answer(404, "", "")),
              ElementsAre(HasSubstr("status is not described")));
  EXPECT_THAT(conformance_.check(get_, Answer()), ElementsAre(HasSubstr("no answer came")));
}

TEST_F(ConformanceTest, UndescribedCode_IsReported) {
  EXPECT_THAT(conformance_.check(get_, problem(503, "timeout")),
              Contains(HasSubstr("code 'timeout' is not described")));
}

TEST_F(ConformanceTest, ProblemBodyWithOtherStatus_IsReported) {
  Answer made = problem(500, "overloaded");
  made.status = 503;
  EXPECT_THAT(conformance_.check(get_, made), ElementsAre(HasSubstr("tells another status")));
}

TEST_F(ConformanceTest, BodyNotMatchingSchema_IsReported) {
  for (const char* body : {R"({"n":"1"})", "{}", R"({"n":1,"m":1})", "[]"}) {
    EXPECT_THAT(conformance_.check(get_, answer(200, "application/json", body)),
                ElementsAre(HasSubstr("body is not as described")))
        << body;
  }
  EXPECT_THAT(conformance_.check(get_, answer(200, "application/json", "{")),
              ElementsAre(HasSubstr("not JSON")));
  EXPECT_THAT(conformance_.check(get_, answer(200, "text/html", R"({"n":1})")),
              ElementsAre(HasSubstr("Content-Type 'text/html' is not described")));
}

TEST_F(ConformanceTest, MissingWrongOrUnknownHeader_IsReported) {
  Answer made = problem(503, "overloaded");
  made.headers.erase("retry-after");
  EXPECT_THAT(conformance_.check(get_, made), ElementsAre(HasSubstr("there is no Retry-After")));
  made.headers["retry-after"] = "soon";
  EXPECT_THAT(conformance_.check(get_, made), ElementsAre(HasSubstr("Retry-After is not as described")));
  made = problem(503, "overloaded");
  made.headers["x-more"] = "1";
  EXPECT_THAT(conformance_.check(get_, made), ElementsAre(HasSubstr("'x-more' is not described")));
  made = problem(503, "overloaded");
  made.headers["content-length"] = "1";
  EXPECT_THAT(conformance_.check(get_, made), ElementsAre(HasSubstr("Content-Length is 1")));
}

TEST_F(ConformanceTest, HeadResponseWithBody_IsReported) {
  const Request head{"HEAD", "/a"};
  EXPECT_THAT(conformance_.check(head, answer(200, "application/json", R"({"n":1})")),
              ElementsAre(HasSubstr("HEAD was answered with a body")));
  EXPECT_THAT(conformance_.check(head, answer(200, "application/json", "")), IsEmpty());
}

TEST_F(ConformanceTest, AllowHeader_MustListDescribedMethods) {
  Answer made{204, {{"allow", "GET, HEAD, POST, OPTIONS"}}, ""};
  EXPECT_THAT(conformance_.check({"OPTIONS", "/a"}, made), IsEmpty());
  made.headers["allow"] = "GET, HEAD, OPTIONS";
  EXPECT_THAT(conformance_.check({"OPTIONS", "/a"}, made),
              ElementsAre(HasSubstr("Allow is 'GET, HEAD, OPTIONS'")));
}

TEST_F(ConformanceTest, AcceptedUndescribedRequestBody_IsReported) {
  const auto accepted = [this](const std::string& type, const std::string& body) {
    return conformance_.check({"POST", "/a", type, body}, answer(200, "text/plain", "fine"));
  };
  EXPECT_THAT(accepted("application/json", "[]"), IsEmpty());
  EXPECT_THAT(accepted("application/json", "{}"), ElementsAre(HasSubstr("a body was accepted")));
  EXPECT_THAT(accepted("text/plain", "[]"), ElementsAre(HasSubstr("type 'text/plain' was accepted")));
}

TEST_F(ConformanceTest, UnseenResponses_AreListed) {
  const Operation get{"GET", "/a"};
  EXPECT_THAT(conformance_.unseen(),
              ElementsAre(Case{any_other, "204", ""}, Case{get, "200", ""}, Case{get, "503", "not_durable"},
                          Case{get, "503", "overloaded"}, Case{{"POST", "/a"}, "200", ""}));
  conformance_.check(get_, problem(503, "overloaded"));
  conformance_.check({"HEAD", "/a"}, answer(200, "application/json", ""));
  EXPECT_THAT(conformance_.unseen(),
              ElementsAre(Case{any_other, "204", ""}, Case{get, "200", ""}, Case{get, "503", "not_durable"},
                          Case{{"POST", "/a"}, "200", ""}))
      << "HEAD alone does not show a GET";
}

}  // namespace
}  // namespace spoor::openapi
