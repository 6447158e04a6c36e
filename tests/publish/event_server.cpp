#include "tests/publish/event_server.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "base/base64.h"

namespace spoor::publish {

Event::Kind kind_of(const std::string& name) {
  constexpr std::array names = {"new", "changed", "replaced", "deleted", "reset", "scan"};
  const auto* const found = std::ranges::find(names, name);
  if (found == names.end()) throw std::runtime_error("unknown change " + name);
  return static_cast<Event::Kind>(found - names.begin());
}

Event read_event(const nlohmann::json& json) {
  const std::string type = json.at("type");
  if (json.at("specversion") != "1.0" || !type.starts_with("spoor.")) throw std::runtime_error(json.dump());
  const nlohmann::json& data = json.at("data");
  Event event{.kind = kind_of(type.substr(6)), .scan = data.at("scan"), .id = json.at("id")};
  if (!data.contains("kind")) return event;
  event.is_file = data["kind"] == "file";
  event.path = data.at("path");
  if (data.contains("path_base64")) event.path = base::from_base64(std::string(data["path_base64"])).value();
  return event;
}

}  // namespace spoor::publish
