// docs/openapi.yaml as a test needs it: operations, answers and schemas, references resolved.
#pragma once

#include <compare>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace spoor::openapi {

struct Operation {
  std::string method;  // in capitals
  std::string path;

  auto operator<=>(const Operation&) const = default;
};

// What stands under `x-any-other-request`: what no operation answers.
inline const Operation any_other{"*", "*"};

// One kind of answer: the code is empty where it is no problem.
struct Case {
  Operation operation;
  std::string status;
  std::string code;

  auto operator<=>(const Case&) const = default;
};

std::string to_string(const Case& which);

class Description {
 public:
  // Throws where the file is not YAML, or names a member twice.
  static Description read(const std::filesystem::path& yaml);

  explicit Description(nlohmann::json document) : document_(std::move(document)) {}

  const nlohmann::json& document() const { return document_; }

  // All of them, in the order of their paths; without HEAD and OPTIONS, and without `any_other`.
  std::vector<Operation> operations() const;
  bool has_path(const std::string& path) const { return !template_of(path).empty(); }

  // The path as the document has it, which may end with a parameter, "/page/{name}"; empty where it is not
  // there.
  std::string template_of(const std::string& path) const;

  // What answers this request: HEAD is GET, and what is not there is `any_other`.
  Operation operation_of(const std::string& method, const std::string& path) const;

  // The text of an operation. Throws where it is not there.
  const nlohmann::json& text_of(const Operation& operation) const;

  // The methods of a path as `Allow` tells them.
  std::string allowed_at(const std::string& path) const;

  // The roles of which any one will do; empty where everybody may.
  std::set<std::string> roles_of(const Operation& operation) const;

  // The object itself, or what its `$ref` leads to.
  const nlohmann::json& resolved(const nlohmann::json& object) const;

  // Everything that may be answered.
  std::set<Case> cases() const;

  // The values that a schema leaves to the member `code`.
  std::set<std::string> codes_of(const nlohmann::json& schema) const;

  // Why a value does not fit a schema; empty where it does.
  std::string misfit(const nlohmann::json& schema, const nlohmann::json& value) const;

  // Every example, under a name for messages, with the schema that it has to fit.
  struct Example {
    std::string where;
    nlohmann::json schema;
    nlohmann::json value;
  };
  std::vector<Example> examples() const;

 private:
  nlohmann::json document_;
};

// The values of the examples of a media type, a parameter or a header.
std::vector<nlohmann::json> examples_of(const nlohmann::json& described);

}  // namespace spoor::openapi
