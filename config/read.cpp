#include "config/read.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "config/settings.h"
#include "config/suggest.h"
#include "config/units.h"

namespace spoor::config {
namespace {

using nlohmann::json;

// The arguments common to read_value() of all types.
struct Context {
  Origin origin;
  std::string_view text;
  Problems& problems;
};

// The message does not quote a value below `auth`: it may be a secret in the wrong place.
void refuse(const Context& context, std::string_view key, const json& value, std::string_view expected) {
  if (key.starts_with("auth.")) {
    context.problems.push_back(
        {std::string(key), fmt::format("{}: the value is wrong: expected {}", key, expected)});
    return;
  }
  const std::string shown = value.is_string()
                                ? in_quotes(value.get_ref<const std::string&>())
                                : value.dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 80);
  context.problems.push_back(
      {std::string(key), fmt::format("{}: {} is wrong: expected {}", key, shown, expected)});
}

// The text of a value for a setting of type string.
std::optional<std::string> text_of(const Context& context, const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (context.origin == Origin::override_text) return std::string(context.text);
  return std::nullopt;
}

void read_value(const Context& context, std::string_view key, const json& value, std::string& target) {
  if (auto text = text_of(context, value)) {
    target = *std::move(text);
  } else {
    refuse(context, key, value, "text in quotes");
  }
}

// "/mnt/disk1/" and "/mnt/disk1" are the same drive. ".." is kept, and refused later: its meaning depends on
// symbolic links.
std::filesystem::path normal(const std::string& text) {
  std::filesystem::path path;
  for (const std::filesystem::path& part : std::filesystem::path(text)) {
    if (!part.empty() && part != ".") path /= part;
  }
  return path;
}

void read_value(const Context& context, std::string_view key, const json& value,
                std::filesystem::path& target) {
  if (const auto text = text_of(context, value)) {
    target = normal(*text);
  } else {
    refuse(context, key, value, "a path in quotes");
  }
}

void read_value(const Context& context, std::string_view key, const json& value, bool& target) {
  if (value.is_boolean()) {
    target = value.get<bool>();
  } else {
    refuse(context, key, value, "true or false");
  }
}

void read_value(const Context& context, std::string_view key, const json& value, double& target) {
  if (value.is_number()) {
    target = value.get<double>();
  } else {
    refuse(context, key, value, "a number");
  }
}

template <class T>
void read_value(const Context& context, std::string_view key, const json& value, Whole<T> target) {
  if (value.is_number_unsigned() && std::in_range<T>(value.get<std::uint64_t>())) {
    target.value = static_cast<T>(value.get<std::uint64_t>());
  } else {
    refuse(context, key, value, fmt::format("a whole number from {} to {}", target.least, target.most));
  }
}

// Adds the problem of a text that parse_duration() or parse_size() refused.
void add_problem(const Context& context, std::string_view key, const base::Error& error) {
  context.problems.push_back({std::string(key), fmt::format("{}: {}", key, error.message)});
}

template <class T>
void read_value(const Context& context, std::string_view key, const json& value, Duration<T> target) {
  const auto text = text_of(context, value);
  if (!text) return refuse(context, key, value, "a duration in quotes, such as \"10s\"");
  const auto parsed = parse_duration(*text);
  if (!parsed) return add_problem(context, key, parsed.error());
  target.value = *parsed;
}

template <class T>
void read_value(const Context& context, std::string_view key, const json& value, ByteSize<T> target) {
  if (value.is_number_unsigned()) {
    target.bytes = value.get<std::uint64_t>();
    return;
  }
  const auto text = text_of(context, value);
  if (!text) return refuse(context, key, value, "a size, such as \"8MiB\" or 8388608");
  const auto parsed = parse_size(*text);
  if (!parsed) return add_problem(context, key, parsed.error());
  target.bytes = *parsed;
}

// A text that `parse` reads.
template <class T>
void read_text(const Context& context, std::string_view key, const json& value, T& target,
               std::string_view expected, auto parse) {
  const auto text = text_of(context, value);
  if (!text) return refuse(context, key, value, expected);
  auto parsed = parse(*text);
  if (!parsed) return add_problem(context, key, parsed.error());
  target = *std::move(parsed);
}

void read_value(const Context& context, std::string_view key, const json& value, base::DnsSource& target) {
  read_text(context, key, value, target, "a DNS name in quotes", base::parse_dns_source);
}

void read_value(const Context& context, std::string_view key, const json& value, base::DnsServer& target) {
  read_text(context, key, value, target, "an IP address in quotes", base::parse_dns_server);
}

template <class Enum>
  requires std::is_enum_v<Enum>
void read_value(const Context& context, std::string_view key, const json& value, Enum& target) {
  std::string accepted;
  for (const auto& [name, enumerator] : names_of(Enum{})) {
    if (value.is_string() && value.get_ref<const std::string&>() == name) {
      target = enumerator;
      return;
    }
    accepted += fmt::format("{}\"{}\"", accepted.empty() ? "" : ", ", name);
  }
  refuse(context, key, value, "one of " + accepted);
}

template <class T>
concept HasParts = requires(T& part) { visit_parts(part, [](std::string_view, auto&&) {}); };

// An example of an object of this type, for messages.
std::string_view example_of(const Listener&) {
  return R"({"address": "127.0.0.1", "port": 7420} or {"unix": "/path"})";
}
std::string_view example_of(const Tls&) { return R"({"certificate": "/path", "key": "/path"})"; }
std::string_view example_of(const PeerTls&) { return R"({"ca": "/path"})"; }
std::string_view example_of(const Token&) { return R"({"name": "app", "role": "mark", "file": "/path"})"; }
std::string_view example_of(const UnixRule&) { return R"({"user": "app", "role": "mark"})"; }
std::string_view example_of(const CertificateRule&) {
  return R"({"name": "*.nodes.example", "role": "peer"})";
}
std::string_view example_of(const Etcd&) { return R"({"endpoints": ["http://HOST:2379"]})"; }

template <class T>
void read_value(const Context& context, std::string_view key, const json& value, std::vector<T>& target);
template <class T>
void read_value(const Context& context, std::string_view key, const json& value, Urls<T> target);
template <HasParts T>
void read_value(const Context& context, std::string_view key, const json& value, std::optional<T>& target);

template <HasParts T>
void read_value(const Context& context, std::string_view key, const json& value, T& target) {
  if (!value.is_object()) return refuse(context, key, value, example_of(target));
  // Only the whole value of an override may omit the quotes, not a part of it.
  const Context strict{Origin::file, {}, context.problems};
  std::vector<std::string> known;
  visit_parts(target, [&](std::string_view name, auto&& part) {
    known.push_back(fmt::format("{}.{}", key, name));
    if (const auto found = value.find(name); found != value.end())
      read_value(strict, known.back(), *found, part);
  });
  const std::vector<std::string_view> known_views(known.begin(), known.end());
  for (const auto& part : value.items()) {
    const std::string part_key = fmt::format("{}.{}", key, part.key());
    if (std::ranges::find(known, part_key) == known.end()) {
      context.problems.push_back(unknown_key(part_key, known_views));
    }
  }
  if constexpr (std::is_same_v<T, Listener>) {
    if (value.contains("unix") && value.contains("port")) {
      context.problems.push_back(
          {std::string(key), fmt::format("{}: a Unix socket has no port: remove 'port' or 'unix'", key)});
    }
  }
}

template <HasParts T>
void read_value(const Context& context, std::string_view key, const json& value, std::optional<T>& target) {
  target.reset();
  if (value.is_null()) return;
  if (!value.is_object()) return refuse(context, key, value, fmt::format("null or {}", example_of(T{})));
  read_value(context, key, value, target.emplace());
}

// If one element is invalid, the whole list keeps its previous value.
template <class T>
void read_list(const Context& context, std::string_view key, const json& value, std::vector<T>& target,
               auto read_element) {
  if (!value.is_array()) return refuse(context, key, value, "a list in [ ]");
  const std::size_t before = context.problems.size();
  std::vector<T> elements;
  // Only the whole value of an override may omit the quotes, not a part of it.
  const Context strict{Origin::file, {}, context.problems};
  for (const json& element : value) {
    const std::string element_key = fmt::format("{}[{}]", key, elements.size());
    read_element(strict, element_key, element, elements.emplace_back());
  }
  if (context.problems.size() == before) target = std::move(elements);
}

template <class T>
void read_value(const Context& context, std::string_view key, const json& value, std::vector<T>& target) {
  read_list(context, key, value, target,
            [](const Context& strict, std::string_view element_key, const json& element, T& part) {
              read_value(strict, element_key, element, part);
            });
}

template <class T>
void read_value(const Context& context, std::string_view key, const json& value, Urls<T> target) {
  const auto parse = [&](std::string_view text) { return base::parse_endpoint(text, target.default_port); };
  read_list(context, key, value, target.endpoints,
            [&](const Context& strict, std::string_view element_key, const json& element,
                base::Endpoint& endpoint) {
              read_text(strict, element_key, element, endpoint, "a URL in quotes", parse);
            });
}

// "section" of "section.setting"; empty for a setting outside all sections.
std::string_view section_of(std::string_view key) {
  const auto dot = key.find('.');
  return dot == std::string_view::npos ? std::string_view() : key.substr(0, dot);
}

void check_section(const Context& context, const std::string& section, const json& value,
                   std::span<const std::string_view> known) {
  if (!value.is_object()) {
    // Does not quote the value: it may be a secret in the wrong place.
    context.problems.push_back({section, fmt::format("{}: expected an object in {{ }}", section)});
    return;
  }
  for (const auto& part : value.items()) {
    const std::string key = fmt::format("{}.{}", section, part.key());
    if (std::ranges::find(known, key) == known.end()) context.problems.push_back(unknown_key(key, known));
  }
}

void check_keys(const Context& context, const json& document, std::span<const std::string_view> known) {
  for (const auto& [name, value] : document.items()) {
    if (std::ranges::find(known, name) == known.end()) {
      context.problems.push_back(unknown_key(name, known));
    } else if (const std::string_view section = section_of(name); !section.empty()) {
      context.problems.push_back(
          {name, fmt::format("key '{}' is written {{\"{}\": {{\"{}\": ...}}}} in a file", name, section,
                             name.substr(section.size() + 1))});
    } else if (std::ranges::any_of(known, [&](std::string_view key) { return section_of(key) == name; })) {
      check_section(context, name, value, known);
    }
  }
}

const json* find(const json& document, std::string_view key) {
  const std::string_view section = section_of(key);
  if (section.empty()) {
    const auto found = document.find(key);
    return found == document.end() ? nullptr : &*found;
  }
  const auto outer = document.find(section);
  if (outer == document.end() || !outer->is_object()) return nullptr;
  const auto found = outer->find(key.substr(section.size() + 1));
  return found == outer->end() ? nullptr : &*found;
}

}  // namespace

std::vector<std::string_view> known_keys() {
  std::vector<std::string_view> keys;
  const Config config;
  visit_settings(config, [&](std::string_view key, const auto& /*value*/) {
    const std::string_view section = section_of(key);
    if (!section.empty() && std::ranges::find(keys, section) == keys.end()) keys.push_back(section);
    keys.push_back(key);
  });
  return keys;
}

void read_settings(const json& document, Origin origin, std::string_view text, Config& config,
                   Problems& problems) {
  const Context context{origin, text, problems};
  if (!document.is_object()) {
    problems.push_back({"", "the configuration must be one JSON object: { ... }"});
    return;
  }
  check_keys(context, document, known_keys());
  visit_settings(config, [&](std::string_view key, auto&& target) {
    if (const json* value = find(document, key)) read_value(context, key, *value, target);
  });
  if (document.contains("listen")) config.listen_is_default = false;
}

}  // namespace spoor::config
