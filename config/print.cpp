#include <concepts>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "config/load.h"
#include "config/settings.h"
#include "config/units.h"

namespace spoor::config {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const std::string& value) { return value; }
ordered_json to_json(const std::filesystem::path& value) { return value.native(); }
ordered_json to_json(double value) { return value; }
ordered_json to_json(std::same_as<bool> auto value) { return value; }

ordered_json to_json(const base::DnsSource& value) { return value.to_string(); }
ordered_json to_json(const base::DnsServer& value) { return value.to_string(); }

ordered_json to_json(Urls urls) {
  ordered_json list = ordered_json::array();
  for (const base::Endpoint& endpoint : urls.endpoints) list.push_back(endpoint.to_string());
  return list;
}

template <class T>
ordered_json to_json(Number<T> number) {
  if constexpr (std::same_as<T, std::chrono::milliseconds>) {
    return format_duration(number.value);
  } else {
    return number.unit == Unit::bytes ? ordered_json(format_size(number.value)) : ordered_json(number.value);
  }
}

ordered_json to_json(AllOr setting) {
  if (setting.all) return "all";
  ordered_json list = ordered_json::array();
  for (const std::filesystem::path& path : setting.paths) list.push_back(path.native());
  return list;
}

template <class Enum>
  requires std::is_enum_v<Enum>
ordered_json to_json(Enum value) {
  for (const auto& [name, enumerator] : names_of(value)) {
    if (enumerator == value) return name;
  }
  return nullptr;
}

template <class T>
ordered_json to_json(const std::optional<T>& value);
template <class T>
ordered_json to_json(const std::vector<T>& values);

template <HasParts T>
ordered_json to_json(T part) {
  ordered_json object;
  visit_parts(part, [&](std::string_view name, auto&& value) { object[std::string(name)] = to_json(value); });
  return object;
}

// Without members that do not apply to this kind of listener or have their default value.
ordered_json to_json(const Listener& listener) {
  ordered_json object;
  if (listener.unix_path.empty()) {
    object["address"] = listener.address;
    object["port"] = listener.port;
  } else {
    object["unix"] = listener.unix_path.native();
  }
  if (listener.insecure) object["insecure"] = true;
  if (listener.tls) object["tls"] = to_json(*listener.tls);
  if (!listener.page) object["page"] = false;
  if (!listener.mode.empty()) object["mode"] = listener.mode;
  if (!listener.group.empty()) object["group"] = listener.group;
  return object;
}

template <class T>
ordered_json to_json(const std::vector<T>& values) {
  ordered_json list = ordered_json::array();
  for (const T& value : values) list.push_back(to_json(value));
  return list;
}

template <class T>
ordered_json to_json(const std::optional<T>& value) {
  return value ? to_json(*value) : ordered_json(nullptr);
}

}  // namespace

std::string to_json_text(Config config) {
  ordered_json document;
  visit_settings(config,
                 [&](std::string_view key, auto&& value) { document[pointer_to(key)] = to_json(value); });
  return document.dump(2) + "\n";
}

std::vector<std::string> changed_keys(Config before, Config after) {
  std::vector<ordered_json> values;
  visit_settings(before, [&](std::string_view, auto&& value) { values.push_back(to_json(value)); });
  std::vector<std::string> changed;
  std::size_t at = 0;
  visit_settings(after, [&](std::string_view key, auto&& value) {
    if (values[at++] != to_json(value)) changed.emplace_back(key);
  });
  return changed;
}

}  // namespace spoor::config
