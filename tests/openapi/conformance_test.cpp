// The check itself: it must see made-up violations, or it would prove nothing about the daemon.
#include "tests/openapi/conformance.h"

#include <gmock/gmock.h>

#include <tuple>

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

// Each is reported, and nothing else: "" is nothing.
TEST_F(ConformanceTest, ResponseThatIsNotAsDescribed_IsReported) {
  const auto with_header = [](Answer made, const char* name, const char* value) {
    made.headers[name] = value;
    return made;
  };
  Answer without_header = problem(503, "overloaded");
  without_header.headers.erase("retry-after");
  Answer of_other_status = problem(500, "overloaded");
  of_other_status.status = 503;
  const Answer good = answer(200, "application/json", R"({"n":1})");
  const Request head{"HEAD", "/a"};
  const char* const no_fit = "body is not as described";
  const std::tuple<Request, Answer, const char*> cases[] = {
      {get_, good, ""},
      {get_, problem(503, "overloaded"), ""},
      {head, answer(200, "application/json", ""), ""},
      {get_, answer(404, "", ""), "status is not described"},
      {get_, Answer(), "no answer came"},
      {get_, of_other_status, "tells another status"},
      {get_, answer(200, "application/json", R"({"n":"1"})"), no_fit},
      {get_, answer(200, "application/json", "{}"), no_fit},
      {get_, answer(200, "application/json", R"({"n":1,"m":1})"), no_fit},
      {get_, answer(200, "application/json", "[]"), no_fit},
      {get_, answer(200, "application/json", "{"), "not JSON"},
      {get_, answer(200, "text/html", R"({"n":1})"), "Content-Type 'text/html' is not described"},
      {get_, without_header, "there is no Retry-After"},
      {get_, with_header(problem(503, "overloaded"), "retry-after", "soon"),
       "Retry-After is not as described"},
      {get_, with_header(problem(503, "overloaded"), "x-more", "1"), "'x-more' is not described"},
      {get_, with_header(problem(503, "overloaded"), "content-length", "1"), "Content-Length is 1"},
      {head, good, "HEAD was answered with a body"}};
  for (const auto& [request, response, complaint] : cases) {
    const auto complaints = conformance_.check(request, response);
    if (*complaint == '\0') {
      EXPECT_THAT(complaints, IsEmpty());
    } else {
      EXPECT_THAT(complaints, ElementsAre(HasSubstr(complaint)));
    }
  }
  EXPECT_THAT(conformance_.check(get_, problem(503, "timeout")),
              Contains(HasSubstr("code 'timeout' is not described")));
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
