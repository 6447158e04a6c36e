// The description by itself.
#include "tests/openapi/description.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "tests/support/temp_directory.h"

namespace spoor::openapi {
namespace {

using nlohmann::json;

const Description& description() {
  static const Description read = Description::read(SPOOR_SOURCE_DIR "/docs/openapi.yaml");
  return read;
}

TEST(DescriptionTest, EveryExample_MatchesItsSchema) {
  EXPECT_GT(description().examples().size(), 15U);
  for (const Description::Example& example : description().examples()) {
    EXPECT_EQ(description().misfit(example.schema, example.value), "") << example.where;
  }
}

TEST(DescriptionTest, EveryReference_ResolvesAndEveryComponentIsUsed) {
  std::set<std::string> used;
  const std::function<void(const json&)> visit = [&](const json& part) {
    if (part.is_object() && part.contains("$ref")) {
      used.insert(part["$ref"]);
      EXPECT_NO_THROW(description().resolved(part)) << part;
    }
    for (const json& inner : part) {
      if (inner.is_structured()) visit(inner);
    }
  };
  visit(description().document());
  for (const char* kind : {"headers", "responses", "schemas"}) {
    for (const auto& [name, component] : description().document()["components"][kind].items()) {
      EXPECT_TRUE(used.contains(std::string("#/components/") + kind + '/' + name)) << kind << ' ' << name;
    }
  }
}

TEST(DescriptionTest, EveryOperation_HasUniqueIdAndRoles) {
  std::set<std::string> names;
  for (const Operation& operation : description().operations()) {
    const json& text = description().text_of(operation);
    EXPECT_TRUE(names.insert(text.at("operationId")).second) << operation.path;
    EXPECT_TRUE(text.contains("summary")) << operation.path;
    std::set<std::string> roles_by_scheme[2];
    for (const json& requirement : text.at("security")) {
      for (const auto& [scheme, roles] : requirement.items()) {
        EXPECT_TRUE(description().document()["components"]["securitySchemes"].contains(scheme)) << scheme;
        for (const json& role : roles) roles_by_scheme[scheme == "token" ? 0 : 1].insert(role);
      }
    }
    EXPECT_EQ(roles_by_scheme[0], roles_by_scheme[1]) << operation.path << ": a role is a role by any means";
  }
}

// The objects that answers consist of: a member nobody described must not pass.
TEST(DescriptionTest, ResponseSchemas_AllowNoAdditionalProperties) {
  const std::set<std::string> of_requests = {"S3Notification", "CycleQuery"};
  const std::function<void(const std::string&, const json&)> visit = [&](const std::string& where,
                                                                         const json& part) {
    if (part.is_object() && part.value("type", json()) == "object") {
      EXPECT_EQ(part.value("additionalProperties", json()), false) << where;
    }
    if (!part.is_structured()) return;
    for (const auto& [name, inner] : part.items()) visit(where + '/' + name, inner);
  };
  for (const auto& [name, schema] : description().document()["components"]["schemas"].items()) {
    if (!of_requests.contains(name)) visit(name, schema);
  }
  visit("responses", description().document()["components"]["responses"]);
  for (const Operation& operation : description().operations()) {
    visit(operation.path, description().text_of(operation)["responses"]);
  }
}

TEST(DescriptionTest, Yaml_IsReadByItsCoreSchema) {
  const support::TempDirectory directory;
  std::ofstream(directory / "a.yaml")
      << "a: [1, '1', 1.5, true, 'true', null, 'null', text, '200', -7]\nb: {}\n";
  EXPECT_EQ(Description::read(directory / "a.yaml").document(),
            json::parse(R"({"a":[1,"1",1.5,true,"true",null,"null","text","200",-7],"b":{}})"));
  std::ofstream(directory / "b.yaml") << "a: 1\na: 2\n";
  EXPECT_THROW(Description::read(directory / "b.yaml"), std::runtime_error);
}

}  // namespace
}  // namespace spoor::openapi
