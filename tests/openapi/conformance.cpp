#include "tests/openapi/conformance.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

namespace spoor::openapi {
namespace {

using nlohmann::json;

constexpr const char* problem_type = "application/problem+json";

// What HTTP itself has in every answer.
const std::set<std::string> common_headers = {"connection", "content-length", "content-type", "date",
                                              "server"};

bool is_json(const std::string& type) { return type == "application/json" || type == problem_type; }

std::string small(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// A header is text, whatever it stands for.
json header_value(const json& schema, const std::string& text) {
  if (schema.value("type", "") != "integer") return text;
  const json number = json::parse(text, nullptr, false);
  return number.is_discarded() ? json(text) : number;
}

}  // namespace

std::vector<std::string> Conformance::check(const Request& request, const Answer& answer) {
  const Operation operation = description_.operation_of(request.method, request.path());
  const std::string status = std::to_string(answer.status);
  about_ = request.method + ' ' + request.target + ' ' + status + ": ";
  complaints_.clear();
  if (answer.status == 0) {
    complain("no answer came");
    return std::exchange(complaints_, {});
  }
  const bool is_head = request.method == "HEAD";  // it does not show the code
  if (!is_head) seen_.insert({operation, status, code_of(answer)});
  const json& responses = description_.text_of(operation).at("responses");
  if (!responses.contains(status)) {
    complain("the status is not described: " + answer.body);
    return std::exchange(complaints_, {});
  }
  const json& response = description_.resolved(responses[status]);
  check_content(response, request, answer);
  check_headers(response, answer);
  check_allow(request, answer);
  if (answer.status == 200 && !is_head) check_accepted(operation, request);
  return std::exchange(complaints_, {});
}

void Conformance::check_content(const json& response, const Request& request, const Answer& answer) {
  if (!response.contains("content")) {
    if (!answer.body.empty()) complain("a body is not described: " + answer.body);
    if (!answer.header("content-type").empty()) complain("a Content-Type is not described");
    return;
  }
  const std::string type = answer.header("content-type");
  if (!response["content"].contains(type))
    return complain("the Content-Type '" + type + "' is not described");
  if (request.method == "HEAD") {
    if (!answer.body.empty()) complain("HEAD was answered with a body");
    if (answer.header("content-length").empty()) complain("there is no Content-Length");
    return;
  }
  if (answer.header("content-length") != std::to_string(answer.body.size())) {
    complain("Content-Length is " + answer.header("content-length") + ", but " +
             std::to_string(answer.body.size()) + " bytes came");
  }
  check_body(response["content"][type], answer);
}

void Conformance::check_body(const json& content, const Answer& answer) {
  if (!content.contains("schema")) return;  // bytes
  const std::string type = answer.header("content-type");
  const json value = is_json(type) ? json::parse(answer.body, nullptr, false) : json(answer.body);
  if (value.is_discarded()) return complain("the body is not JSON: " + answer.body);
  const std::string misfit = description_.misfit(content["schema"], value);
  if (!misfit.empty()) complain("the body is not as described: " + answer.body + '\n' + misfit);
  if (type == problem_type) check_problem(content["schema"], answer);
}

void Conformance::check_problem(const json& schema, const Answer& answer) {
  const std::string code = code_of(answer);
  if (!description_.codes_of(schema).contains(code)) complain("the code '" + code + "' is not described");
  const json problem = json::parse(answer.body);
  if (problem.value("status", 0U) != answer.status)
    complain("the problem tells another status: " + answer.body);
}

void Conformance::check_headers(const json& response, const Answer& answer) {
  std::set<std::string> described = common_headers;
  const json headers = response.value("headers", json::object());
  for (const auto& [name, reference] : headers.items()) {
    described.insert(small(name));
    const json& header = description_.resolved(reference);
    const std::string text = answer.header(small(name));
    if (text.empty() && header.value("required", false)) complain("there is no " + name);
    if (text.empty()) continue;
    const json& schema = header.at("schema");
    const std::string misfit = description_.misfit(schema, header_value(schema, text));
    if (!misfit.empty()) complain("the header " + name + " is not as described: " + text + '\n' + misfit);
  }
  for (const auto& [name, text] : answer.headers) {
    if (!described.contains(name)) complain("the header '" + name + "' is not described");
  }
}

void Conformance::check_allow(const Request& request, const Answer& answer) {
  const std::string allow = answer.header("allow");
  if (allow.empty() || !description_.has_path(request.path())) return;
  const std::string described = description_.allowed_at(request.path());
  if (allow != described) complain("Allow is '" + allow + "', described is '" + described + "'");
}

// A request that is accepted is one that the description allows.
void Conformance::check_accepted(const Operation& operation, const Request& request) {
  const json& text = description_.text_of(operation);
  const json contents = text.value("requestBody", json::object()).value("content", json::object());
  if (contents.empty()) return;
  // Where no type is sent, the first one is meant. Parameters make no other type of it.
  const std::string type = request.content_type.empty()
                               ? contents.begin().key()
                               : request.content_type.substr(0, request.content_type.find(';'));
  if (!contents.contains(type)) return complain("a body of the type '" + type + "' was accepted");
  if (!contents[type].contains("schema")) return;  // bytes
  const json value = is_json(type) ? json::parse(request.body, nullptr, false) : json(request.body);
  const std::string misfit = description_.misfit(contents[type]["schema"], value);
  if (!misfit.empty())
    complain("a body was accepted that is not as described: " + request.body + '\n' + misfit);
}

std::set<Case> Conformance::unseen() const {
  const std::set<Case> described = description_.cases();
  std::set<Case> missing;
  std::ranges::set_difference(described, seen_, std::inserter(missing, missing.end()));
  return missing;
}

std::string Conformance::code_of(const Answer& answer) {
  if (answer.header("content-type") != problem_type) return {};
  const json problem = json::parse(answer.body, nullptr, false);
  return problem.is_object() ? problem.value("code", "") : "";
}

}  // namespace spoor::openapi
