#include "tests/openapi/description.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <boost/algorithm/string/case_conv.hpp>
#include <charconv>
#include <functional>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

namespace spoor::openapi {
namespace {

using nlohmann::json;

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// By the core schema of YAML 1.2.
json to_json(const YAML::Node& node);

json scalar_to_json(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  const bool is_quoted = node.Tag() == "!";
  if (is_quoted) return text;
  if (text == "true" || text == "false") return text == "true";
  if (text == "null" || text == "~") return nullptr;
  if (const auto number = number_in<std::int64_t>(text)) return *number;
  if (const auto number = number_in<double>(text)) return *number;
  return text;
}

json map_to_json(const YAML::Node& node) {
  json object = json::object();
  for (const auto& member : node) {
    const auto name = member.first.as<std::string>();
    if (object.contains(name)) throw std::runtime_error("the member '" + name + "' is given twice");
    object[name] = to_json(member.second);
  }
  return object;
}

json to_json(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Scalar:
      return scalar_to_json(node);
    case YAML::NodeType::Map:
      return map_to_json(node);
    case YAML::NodeType::Sequence: {
      json list = json::array();
      for (const auto& element : node) list.push_back(to_json(element));
      return list;
    }
    default:
      return nullptr;
  }
}

std::set<std::string> intersection(const std::set<std::string>& a, const std::set<std::string>& b) {
  std::set<std::string> both;
  std::ranges::set_intersection(a, b, std::inserter(both, both.end()));
  return both;
}

}  // namespace

std::string to_string(const Case& which) {
  return which.operation.method + ' ' + which.operation.path + ' ' + which.status +
         (which.code.empty() ? "" : ' ' + which.code);
}

std::vector<json> examples_of(const json& described) {
  std::vector<json> values;
  if (described.contains("example")) values.push_back(described["example"]);
  for (const json& example : described.value("examples", json::object())) values.push_back(example["value"]);
  return values;
}

Description Description::read(const std::filesystem::path& yaml) {
  return Description(to_json(YAML::LoadFile(yaml.native())));
}

std::vector<Operation> Description::operations() const {
  std::vector<Operation> all;
  for (const auto& [path, item] : document_["paths"].items()) {
    for (const auto& [method, operation] : item.items()) {
      all.push_back({boost::algorithm::to_upper_copy(method), path});
    }
  }
  return all;
}

std::string Description::template_of(const std::string& path) const {
  if (document_["paths"].contains(path)) return path;
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  for (const auto& [each, item] : document_["paths"].items()) {
    if (each.starts_with(folder + '{') && each.ends_with('}') && path.size() > folder.size()) return each;
  }
  return {};
}

Operation Description::operation_of(const std::string& method, const std::string& path) const {
  const std::string its_method = method == "HEAD" ? "GET" : method;
  const std::string found = template_of(path);
  if (found.empty()) return any_other;
  if (!document_["paths"][found].contains(boost::algorithm::to_lower_copy(its_method))) return any_other;
  return {its_method, found};
}

const json& Description::text_of(const Operation& operation) const {
  if (operation == any_other) return document_.at("x-any-other-request");
  return document_.at("paths").at(operation.path).at(boost::algorithm::to_lower_copy(operation.method));
}

std::string Description::allowed_at(const std::string& path) const {
  std::string methods;
  for (const auto& [method, operation] : document_.at("paths").at(template_of(path)).items()) {
    methods += method == "get" ? "GET, HEAD, " : boost::algorithm::to_upper_copy(method) + ", ";
  }
  return methods + "OPTIONS";
}

std::set<std::string> Description::roles_of(const Operation& operation) const {
  std::set<std::string> roles;
  for (const json& requirement : text_of(operation).at("security")) {
    for (const json& scheme : requirement) {
      for (const json& role : scheme) roles.insert(role);
    }
  }
  return roles;
}

const json& Description::resolved(const json& object) const {
  const json* found = &object;
  while (found->is_object() && found->contains("$ref")) {
    found = &document_.at(json::json_pointer((*found)["$ref"].get<std::string>().substr(1)));
  }
  return *found;
}

std::set<Case> Description::cases() const {
  std::set<Case> all;
  std::vector<Operation> answering = operations();
  answering.push_back(any_other);
  for (const Operation& operation : answering) {
    for (const auto& [status, response] : text_of(operation).at("responses").items()) {
      const json contents = resolved(response).value("content", json::object());
      if (contents.empty()) all.insert({operation, status, ""});
      for (const auto& [type, content] : contents.items()) {
        if (type != "application/problem+json") all.insert({operation, status, ""});
        if (type != "application/problem+json") continue;
        for (const std::string& code : codes_of(content.at("schema"))) all.insert({operation, status, code});
      }
    }
  }
  return all;
}

std::set<std::string> Description::codes_of(const json& schema) const {
  const json& object = resolved(schema);
  std::optional<std::set<std::string>> codes;
  const auto restrict_to = [&](const std::set<std::string>& some) {
    codes = codes ? intersection(*codes, some) : some;
  };
  const json properties = object.value("properties", json::object());
  if (properties.contains("code")) restrict_to(resolved(properties["code"]).at("enum"));
  for (const json& part : object.value("allOf", json::array())) restrict_to(codes_of(part));
  if (object.contains("oneOf")) {
    std::set<std::string> any;
    for (const json& part : object["oneOf"]) any.merge(codes_of(part));
    restrict_to(any);
  }
  return codes.value_or(std::set<std::string>{});
}

std::string Description::misfit(const json& schema, const json& value) const {
  // References lead from the top of the document.
  const json root{{"allOf", json::array({schema})}, {"components", document_.at("components")}};
  valijson::Schema parsed;
  valijson::SchemaParser parser;
  parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(root), parsed);
  valijson::Validator validator;
  valijson::ValidationResults results;
  if (validator.validate(parsed, valijson::adapters::NlohmannJsonAdapter(value), &results)) return {};
  std::string why;
  for (valijson::ValidationResults::Error error; results.popError(error);) {
    for (const std::string& step : error.context) why += step;
    why += ": " + error.description + '\n';
  }
  return why;
}

std::vector<Description::Example> Description::examples() const {
  std::vector<Example> all;
  const std::function<void(const std::string&, const json&)> visit = [&](const std::string& where,
                                                                         const json& part) {
    if (part.is_object() && part.contains("schema")) {
      for (json& value : examples_of(part)) all.push_back({where, part["schema"], std::move(value)});
    }
    if (!part.is_structured()) return;
    for (const auto& [name, inner] : part.items()) visit(where + '/' + name, inner);
  };
  visit("", document_);
  return all;
}

}  // namespace spoor::openapi
