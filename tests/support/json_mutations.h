// JSON documents that another version, or a hostile program, may send in the place of a real one.
#pragma once

#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace spoor::support {

// Calls `check` with copies of the document: each member or element, at any depth, is removed in turn, and
// replaced in turn by a value of each type. `what` is for messages.
template <class Json>
void for_each_mutation(const Json& document,
                       const std::function<void(const Json& mutated, const std::string& what)>& check) {
  const std::array<Json, 10> others = {Json(nullptr),        Json(true),    Json(-1),
                                       Json(~0ULL),          Json(-1e300),  Json(1e300),
                                       Json("\x1b[2J text"), Json::array(), Json::array({nullptr}),
                                       Json::object()};
  const Json flat = document.flatten();
  std::set<std::string> places;
  for (const auto& [place, value] : flat.items()) {
    for (typename Json::json_pointer at(place); !at.empty(); at = at.parent_pointer())
      places.insert(at.to_string());
  }
  for (const std::string& place : places) {
    const typename Json::json_pointer at(place);
    for (const Json& other : others) {
      Json mutated = document;
      mutated[at] = other;
      check(mutated, place + " is " + other.dump());
    }
    Json mutated = document;
    Json& parent = mutated[at.parent_pointer()];
    if (parent.is_array()) {
      parent.erase(std::stoul(at.back()));
    } else {
      parent.erase(at.back());
    }
    check(mutated, place + " is missing");
  }
}

}  // namespace spoor::support
