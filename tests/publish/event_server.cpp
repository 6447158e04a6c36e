#include "tests/publish/event_server.h"

#include <stdexcept>

#include "base/base64.h"

namespace spoor::publish {

StoredEvent read_event(const nlohmann::json& json) {
  const std::string type = json.at("type");
  if (json.at("specversion") != "1.0" || !type.starts_with("spoor.")) throw std::runtime_error(json.dump());
  const nlohmann::json& data = json.at("data");
  StoredEvent event{.id = json.at("id"), .change = type.substr(6), .path = {}, .scan = data.at("scan")};
  if (!data.contains("kind")) return event;
  event.is_file = data["kind"] == "file";
  event.path = data.at("path");
  if (data.contains("path_base64")) event.path = base::from_base64(std::string(data["path_base64"])).value();
  return event;
}

}  // namespace spoor::publish
