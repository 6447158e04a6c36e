// Parameters are taken as their schemas say, and not otherwise.
#include "tests/openapi/fixture.h"

namespace spoor::openapi {
namespace {

using nlohmann::json;

class ParametersTest : public OpenApiTest {
 protected:
  ParametersTest() {
    node_.start();
    node_.take_scan_requests();
    node_.change_and_scan("bucket/a/file");
    node_.change_and_scan("bucket/b/file");
  }

  // Asks with this value of one parameter, the others as the examples have them.
  Answer ask_with(const Operation& operation, const json& parameter, const std::string& value) {
    Query query = query_of(operation, node_);
    query[parameter.at("name")] = value;
    // The last example: that of the type which parameters go with.
    Request request = samples(operation, node_).back();
    request.target = with_query(path_of(operation), query);
    return ask(node_, request);
  }

  void expect_taken(const Operation& operation, const json& parameter, const std::string& value) {
    const Answer answer = ask_with(operation, parameter, value);
    EXPECT_NE(answer.status, 400U) << operation.path << ' ' << parameter["name"] << ' ' << value
                                   << answer.body;
  }
  void expect_refused(const Operation& operation, const json& parameter, const std::string& value) {
    const Answer answer = ask_with(operation, parameter, value);
    EXPECT_EQ(answer.status, 400U) << operation.path << ' ' << parameter["name"] << ' ' << value
                                   << answer.body;
    EXPECT_EQ(Conformance::code_of(answer), "invalid_request");
  }

  void check(const Operation& operation, const json& parameter) {
    const json& schema = description_.resolved(parameter.at("schema"));
    for (const json& value : schema.value("enum", json::array())) {
      expect_taken(operation, parameter, value);
    }
    if (schema.contains("enum")) expect_refused(operation, parameter, "another");
    if (schema.contains("default")) expect_taken(operation, parameter, text_of(schema["default"]));
    if (schema["type"] == "integer") {
      for (const char* value : {"", "x", "-1", "1.5", "99999999999999999999"}) {
        expect_refused(operation, parameter, value);
      }
    }
    if (schema.contains("minimum")) {
      const auto minimum = schema["minimum"].get<std::uint64_t>();
      expect_taken(operation, parameter, std::to_string(minimum));
      if (minimum > 0) expect_refused(operation, parameter, std::to_string(minimum - 1));
    }
    if (schema.contains("maximum")) {
      const auto maximum = schema["maximum"].get<std::uint64_t>();
      expect_taken(operation, parameter, std::to_string(maximum));
      expect_refused(operation, parameter, std::to_string(maximum + 1));
    }
    if (schema.contains("minLength")) expect_refused(operation, parameter, "");
  }

  Node node_;
};

TEST_F(ParametersTest, EveryParameter_AcceptsOnlyValuesOfItsSchema) {
  for (const Operation& operation : description_.operations()) {
    for (const json& parameter : description_.text_of(operation).value("parameters", json::array())) {
      if (parameter["in"] == "query") check(operation, parameter);
    }
  }
}

TEST_F(ParametersTest, MissingParameter_IsRefusedOnlyIfRequired) {
  for (const Operation& operation : description_.operations()) {
    const json parameters = description_.text_of(operation).value("parameters", json::array());
    for (const json& parameter : parameters) {
      Query query = query_of(operation, node_);
      // A `feed` needs it, which no schema of a parameter can say.
      if (operation.path == "/v1/changes" && parameter["name"] == "since") continue;
      if (parameter["in"] != "query") continue;
      query.erase(parameter["name"]);
      Request request = samples(operation, node_).back();
      request.target = with_query(path_of(operation), query);
      if (parameter.value("required", false)) {
        expect(node_, request, 400, "invalid_request");
      } else {
        expect_accepted(node_, request);
      }
    }
  }
}

// A misspelt one would be taken for its default, where a wrong answer would not show.
TEST_F(ParametersTest, UnknownParameter_IsRefusedWhereDescribed) {
  const std::set<std::string> refusing = {"/v1/marks",         "/v1/events/s3", "/v1/dirty",
                                          "/v1/usage",         "/v1/scans",     "/v1/changes",
                                          "/v1/usage/history", "/v1/retire",    "/v1/members"};
  for (const Operation& operation : description_.operations()) {
    Request request = samples(operation, node_).back();
    Query query = query_of(operation, node_);
    query["nobody"] = "knows";
    request.target = with_query(path_of(operation), query);
    const bool is_refused = refusing.contains(operation.path);
    expect(node_, request, is_refused ? 400 : 200, is_refused ? "invalid_request" : "");
  }
}

TEST_F(ParametersTest, JsonBody_RefusesQueryParameters) {
  Request request = samples({"POST", "/v1/marks"}, node_).front();
  ASSERT_EQ(request.content_type, "application/json");
  request.target += "?kind=tree";
  expect(node_, request, 400, "invalid_request");
}

}  // namespace
}  // namespace spoor::openapi
