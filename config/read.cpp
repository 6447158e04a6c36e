#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "config/settings.h"
#include "config/units.h"

namespace spoor::config {
namespace {

using nlohmann::json;

// A value of the document, and where it comes from.
struct Input {
  std::string_view key;
  const json& value;
  Problems& problems;
  std::optional<std::string_view> override_text = {};  // see read_settings()
};

// The message does not quote a value below `auth`: it may be a secret in the wrong place.
void refuse(const Input& input, std::string_view expected) {
  std::string shown = "the value";
  if (!input.key.starts_with("auth.")) {
    const bool is_text = input.value.is_string();
    const std::string text = input.value.dump(-1, ' ', true, json::error_handler_t::replace);
    shown = is_text ? in_quotes(input.value.get_ref<const std::string&>())
                    : base::without_password(text).substr(0, 80);
  }
  add(input.problems, input.key, "{} is wrong: expected {}", shown, expected);
}

// Reads a text that `parse` accepts. For a setting of type string, the value of an override needs no quotes.
template <class T>
void read_text(const Input& input, T& target, std::string_view expected, auto parse) {
  const bool is_text = input.value.is_string();
  if (!is_text && !input.override_text) return refuse(input, expected);
  auto parsed = parse(is_text ? input.value.get<std::string>() : std::string(*input.override_text));
  if (!parsed) return add(input.problems, input.key, "{}", parsed.error().message);
  target = *std::move(parsed);
}

void read_value(const Input& input, std::string& target) {
  read_text(input, target, "text in quotes",
            [](std::string text) { return base::Result<std::string>(std::move(text)); });
}

// "/mnt/disk1/" and "/mnt/disk1" are the same drive. ".." is kept, and refused later: its meaning depends on
// symbolic links.
base::Result<std::filesystem::path> normal(const std::string& text) {
  std::filesystem::path path;
  for (const std::filesystem::path& part : std::filesystem::path(text)) {
    if (!part.empty() && part != ".") path /= part;
  }
  return path;
}

void read_value(const Input& input, std::filesystem::path& target) {
  read_text(input, target, "a path in quotes", normal);
}

void read_value(const Input& input, bool& target) {
  if (!input.value.is_boolean()) return refuse(input, "true or false");
  target = input.value.get<bool>();
}

void read_value(const Input& input, double& target) {
  if (!input.value.is_number()) return refuse(input, "a number");
  target = input.value.get<double>();
}

template <class T>
void read_value(const Input& input, Number<T> target) {
  if (input.value.is_number_unsigned() && std::in_range<T>(input.value.get<std::uint64_t>())) {
    target.value = input.value.get<T>();
    return;
  }
  if constexpr (std::same_as<T, std::uint64_t>) {
    if (target.unit == Unit::bytes)
      return read_text(input, target.value, "a size, such as \"8MiB\" or 8388608", parse_size);
  }
  refuse(input, fmt::format("a whole number from {} to {}", target.least, target.most));
}

void read_value(const Input& input, Number<std::chrono::milliseconds> target) {
  read_text(input, target.value, "a duration in quotes, such as \"10s\"", parse_duration);
}

void read_value(const Input& input, base::DnsSource& target) {
  read_text(input, target, "a DNS name in quotes", base::parse_dns_source);
}

void read_value(const Input& input, base::DnsServer& target) {
  read_text(input, target, "an IP address in quotes", base::parse_dns_server);
}

template <class Enum>
  requires std::is_enum_v<Enum>
void read_value(const Input& input, Enum& target) {
  std::string accepted;
  for (const auto& [name, enumerator] : names_of(Enum{})) {
    if (input.value == name) {
      target = enumerator;
      return;
    }
    accepted += fmt::format("{}\"{}\"", accepted.empty() ? "" : ", ", name);
  }
  refuse(input, "one of " + accepted);
}

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
std::string_view example_of(const UsageCopies&) { return R"({"path": "bucket*", "factor": 3})"; }
std::string_view example_of(const UsageLimit&) { return R"({"path": "bucket", "bytes": "10TiB"})"; }
std::string_view example_of(const Sink&) { return R"({"name": "bus", "url": "nats://HOST"})"; }
std::string_view example_of(const Etcd&) { return R"({"endpoints": ["http://HOST:2379"]})"; }

template <class T>
void read_value(const Input& input, std::vector<T>& target);
void read_value(const Input& input, Urls target);
template <HasParts T>
void read_value(const Input& input, std::optional<T>& target);

template <HasParts T>
void read_value(const Input& input, T& target) {
  if (!input.value.is_object()) return refuse(input, example_of(target));
  std::vector<std::string> known;
  visit_parts(target, [&](std::string_view name, auto&& part) {
    known.push_back(fmt::format("{}.{}", input.key, name));
    // Only the whole value of an override may omit the quotes, not a part of it.
    if (const auto found = input.value.find(name); found != input.value.end())
      read_value(Input{known.back(), *found, input.problems}, part);
  });
  const std::vector<std::string_view> known_views(known.begin(), known.end());
  for (const auto& part : input.value.items()) {
    const std::string part_key = fmt::format("{}.{}", input.key, part.key());
    if (std::ranges::find(known, part_key) == known.end()) {
      input.problems.push_back(unknown_key(part_key, known_views));
    }
  }
  if constexpr (std::is_same_v<T, Listener>) {
    if (input.value.contains("unix") && input.value.contains("port")) {
      add(input.problems, input.key, "a Unix socket has no port: remove 'port' or 'unix'");
    }
  }
}

template <HasParts T>
void read_value(const Input& input, std::optional<T>& target) {
  target.reset();
  if (input.value.is_null()) return;
  if (!input.value.is_object()) return refuse(input, fmt::format("null or {}", example_of(T{})));
  read_value(input, target.emplace());
}

// If one element is invalid, the whole list keeps its previous value.
template <class T>
void read_list(const Input& input, std::vector<T>& target, auto read_element) {
  if (!input.value.is_array()) return refuse(input, "a list in [ ]");
  const std::size_t before = input.problems.size();
  std::vector<T> elements;
  for (const json& element : input.value) {
    const std::string key = fmt::format("{}[{}]", input.key, elements.size());
    // Only the whole value of an override may omit the quotes, not a part of it.
    read_element(Input{key, element, input.problems}, elements.emplace_back());
  }
  if (input.problems.size() == before) target = std::move(elements);
}

template <class T>
void read_value(const Input& input, std::vector<T>& target) {
  read_list(input, target, [](const Input& element, T& part) { read_value(element, part); });
}

void read_value(const Input& input, Urls target) {
  const auto parse = [&](std::string_view text) { return base::parse_endpoint(text, target.default_port); };
  read_list(input, target.endpoints, [&](const Input& element, base::Endpoint& endpoint) {
    read_text(element, endpoint, "a URL in quotes", parse);
  });
}

void read_value(const Input& input, AllOr target) {
  if (input.value == "all") {
    target.all = true;
    target.paths.clear();
  } else if (input.value.is_array()) {
    target.all = false;
    read_value(input, target.paths);
  } else {
    refuse(input, "\"all\" or a list of drives in [ ]");
  }
}

// "section" of "section.setting"; empty for a setting outside all sections.
std::string_view section_of(std::string_view key) {
  const auto dot = key.find('.');
  return dot == std::string_view::npos ? std::string_view() : key.substr(0, dot);
}

// Settings of earlier versions that nothing depends on any more: a configuration with one stays valid.
constexpr std::array<std::string_view, 1> former_keys = {"scan.new_peers"};

void check_section(const std::string& section, const json& value, std::span<const std::string_view> known,
                   Problems& problems) {
  if (!value.is_object()) {
    // Does not quote the value: it may be a secret in the wrong place.
    return add(problems, section, "expected an object in {{ }}");
  }
  for (const auto& part : value.items()) {
    const std::string key = fmt::format("{}.{}", section, part.key());
    const bool is_former = std::ranges::find(former_keys, key) != former_keys.end();
    if (!is_former && std::ranges::find(known, key) == known.end())
      problems.push_back(unknown_key(key, known));
  }
}

void check_keys(const json& document, std::span<const std::string_view> known, Problems& problems) {
  for (const auto& [name, value] : document.items()) {
    if (std::ranges::find(known, name) == known.end()) {
      problems.push_back(unknown_key(name, known));
    } else if (const std::string_view section = section_of(name); !section.empty()) {
      problems.push_back({name, fmt::format("key '{}' is written {{\"{}\": {{\"{}\": ...}}}} in a file", name,
                                            section, name.substr(section.size() + 1))});
    } else if (std::ranges::any_of(known, [&](std::string_view key) { return section_of(key) == name; })) {
      check_section(name, value, known, problems);
    }
  }
}

}  // namespace

std::vector<std::string_view> known_keys() {
  std::vector<std::string_view> keys;
  Config config;
  visit_settings(config, [&](std::string_view key, auto&& /*value*/) {
    const std::string_view section = section_of(key);
    if (!section.empty() && std::ranges::find(keys, section) == keys.end()) keys.push_back(section);
    keys.push_back(key);
  });
  return keys;
}

void read_settings(const json& document, std::optional<std::string_view> override_text, Config& config,
                   Problems& problems) {
  if (!document.is_object()) {
    problems.push_back({"", "the configuration must be one JSON object: { ... }"});
    return;
  }
  check_keys(document, known_keys(), problems);
  visit_settings(config, [&](std::string_view key, auto&& target) {
    const auto pointer = pointer_to(key);
    if (document.contains(pointer)) {
      read_value(Input{key, document.at(pointer), problems, override_text}, target);
    }
  });
  if (document.contains("listen")) config.listen_is_default = false;
}

}  // namespace spoor::config
