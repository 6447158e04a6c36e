// The description, and daemons whose answers are held against it.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "peer/gather/cycle_frame.h"
#include "peer/gather/gather_exchange.h"
#include "tests/openapi/conformance.h"
#include "tests/openapi/description.h"
#include "tests/openapi/exchange.h"
#include "tests/openapi/node.h"
#include "tracker/cycles/ids.h"
#include "tracker/filter/mark_set.h"
#include "tracker/paths/namespace_rules.h"

namespace spoor::openapi {

class OpenApiTest : public testing::Test {
 protected:
  using Query = std::map<std::string, std::string>;

  // Operations and `any_other`, each as a request that would be accepted.
  std::vector<Request> one_of_each(const Node& node) const {
    std::vector<Request> requests;
    for (const Operation& operation : description_.operations()) {
      requests.push_back(samples(operation, node).front());
    }
    requests.push_back({"GET", "/v1/nothing"});
    return requests;
  }

  // A request for each example of a body, with the parameters that have one.
  std::vector<Request> samples(const Operation& operation, const Node& node) const {
    const nlohmann::json& text = description_.text_of(operation);
    const std::string target = with_query(path_of(operation), query_of(operation, node));
    const nlohmann::json contents =
        text.value("requestBody", nlohmann::json::object()).value("content", nlohmann::json::object());
    std::vector<Request> requests;
    for (const auto& [type, content] : contents.items()) {
      for (const nlohmann::json& body : examples_of(content)) {
        std::string bytes = body.is_string() ? body.get<std::string>() : body.dump();
        constexpr std::string_view example_drive = "\"/srv/data\"";
        if (const auto at = bytes.find(example_drive); at != std::string::npos)
          bytes.replace(at, example_drive.size(), nlohmann::json(node.drive().native()).dump());
        requests.push_back({operation.method, target, type, bytes});
      }
      if (type == "application/vnd.spoor.gather")
        requests.push_back({operation.method, target, type, gather_query(node)});
      if (type == peer::cycle_frame_content_type)
        requests.push_back({operation.method, target, type, retiring_frame("default", "n2")});
    }
    if (contents.empty()) requests.push_back({operation.method, target});
    return requests;
  }

  // Of a scan of the node.
  static std::string gather_query(const Node& node, const std::string& name = "n1") {
    peer::GatherQuery query{.node = {"default", name}};
    const auto record = nlohmann::json::parse(std::ifstream(node.directory_ / "data/instance.json"));
    query.instance = tracker::InstanceId::parse(record["instance"].get<std::string>()).value();
    return peer::gather_request({}, query).body;
  }

  // Of a node that retires.
  static std::string retiring_frame(const std::string& cluster, const std::string& node,
                                    tracker::MarkSet marks = {},
                                    const tracker::NamespaceRules::Options& rules = {}) {
    peer::CycleFrame frame{{cluster, node}, 1, tracker::NamespaceRules(rules).digest(), {}, true};
    frame.answer.instance = tracker::InstanceId::parse(std::string(32, 'a')).value();
    frame.answer.current = {1};
    frame.answer.marks = std::move(marks);
    return peer::encode_cycle_frame(frame);
  }

  // The response of a node without other members to a request that is as described: it can't retire.
  Answer expect_accepted(const Node& node, const Request& request) {
    if (request.path() == "/v1/retire") return expect(node, request, 409, "not_retired");
    return expect(node, request, 200);
  }

  // With the parameter in it, if there is one, as its example has it.
  std::string path_of(const Operation& operation) const {
    const std::size_t name = operation.path.find('{');
    if (name == std::string::npos) return operation.path;
    return operation.path.substr(0, name) +
           description_.text_of(operation)["parameters"][0]["example"].get<std::string>();
  }

  // The parameters of the query as the examples have them.
  Query query_of(const Operation& operation, const Node& node) const {
    Query query;
    for (const nlohmann::json& parameter :
         description_.text_of(operation).value("parameters", nlohmann::json::array())) {
      if (!parameter.contains("example") || parameter["in"] != "query") continue;
      const std::string value = text_of(parameter["example"]);
      // A drive of the examples is that of the node.
      query[parameter["name"]] = value == "/srv/data" ? node.drive().native() : value;
    }
    return query;
  }

  static std::string text_of(const nlohmann::json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
  }

  static std::string with_query(std::string target, const Query& query) {
    for (const auto& [name, value] : query) {
      target += target.find('?') == std::string::npos ? '?' : '&';
      target += name + '=' + query_encoded(value);
    }
    return target;
  }

  // The answer, which has to be as described, and of this status and code.
  Answer expect(const Node& node, const Request& request, unsigned status, const std::string& code = {}) {
    const Answer answer = send(node.port(), request);
    expect_described(request, answer, status, code);
    if (request.method == "GET" && request.body.empty()) expect_same_of_head(node, request, answer);
    return answer;
  }

  // The answer, which has to be as described, whatever it is.
  Answer ask(const Node& node, const Request& request) {
    const Answer answer = send(node.port(), request);
    expect_described(request, answer, answer.status, Conformance::code_of(answer));
    return answer;
  }

  void expect_described(const Request& request, const Answer& answer, unsigned status,
                        const std::string& code = {}) {
    EXPECT_EQ(answer.status, status) << request.method << ' ' << request.target << ": " << answer.body;
    EXPECT_EQ(Conformance::code_of(answer), code) << request.method << ' ' << request.target;
    for (const std::string& complaint : conformance_.check(request, answer)) ADD_FAILURE() << complaint;
  }

  void expect_same_of_head(const Node& node, Request request, const Answer& of_get) {
    request.method = "HEAD";
    const Answer answer = send(node.port(), request);
    for (const std::string& complaint : conformance_.check(request, answer)) ADD_FAILURE() << complaint;
    EXPECT_EQ(answer.status, of_get.status) << "HEAD " << request.target;
    EXPECT_EQ(answer.header("content-type"), of_get.header("content-type")) << "HEAD " << request.target;
  }

  const Description description_ = Description::read(SPOOR_SOURCE_DIR "/docs/openapi.yaml");
  Conformance conformance_{description_};
};

}  // namespace spoor::openapi
