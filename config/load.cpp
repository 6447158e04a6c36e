#include "config/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/file_system.h"
#include "base/printable.h"
#include "config/check.h"
#include "config/settings.h"

namespace spoor::config {
namespace {

using nlohmann::json;

// Further problems are only counted.
constexpr std::size_t lines_max = 100;
constexpr int depth_max = 64;

struct TooDeep {};

// A parser callback that reports duplicate keys, of which nlohmann silently keeps the last.
class Watcher {
 public:
  explicit Watcher(Problems& problems) : problems_(problems) {}

  bool operator()(int depth, json::parse_event_t event, const json& parsed) {
    const bool opens =
        event == json::parse_event_t::object_start || event == json::parse_event_t::array_start;
    if (opens && depth >= depth_max) throw TooDeep();
    if (event == json::parse_event_t::object_start) {
      objects_.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      objects_.pop_back();
    } else if (event == json::parse_event_t::key) {
      enter(parsed.get_ref<const std::string&>());
    }
    return true;
  }

 private:
  struct Object {
    std::set<std::string> keys;
    std::string current;
  };

  void enter(const std::string& key) {
    Object& object = objects_.back();
    object.current = key;
    if (object.keys.insert(key).second) return;
    std::string dotted;
    for (const Object& outer : objects_) {
      if (!dotted.empty()) dotted += '.';
      dotted += outer.current;
    }
    problems_.push_back({dotted, fmt::format("key '{}' is given twice: keep one of them", escaped(dotted))});
  }

  Problems& problems_;
  std::vector<Object> objects_;
};

// The message without the library's prefix, and without the text read last, which may be a secret.
std::string explain(const json::parse_error& error) {
  std::string text = error.what();
  if (const auto prefix = text.find("] "); prefix != std::string::npos) text.erase(0, prefix + 2);
  if (const auto last_read = text.find("; last read: "); last_read != std::string::npos)
    text.resize(last_read);
  return text;
}

enum class Comments { allowed, refused };

// Strict: duplicate keys, trailing text and deep nesting are errors. On an error, returns std::nullopt and
// adds the error and its position to `problems`.
std::optional<json> parse_document(std::string_view text, Comments comments, Problems& problems) {
  const std::size_t before = problems.size();
  try {
    json document = json::parse(text, Watcher(problems), true, comments == Comments::allowed);
    if (problems.size() == before) return document;
  } catch (const TooDeep&) {
    problems.push_back({"", fmt::format("the JSON is nested deeper than {} levels", depth_max)});
  } catch (const json::exception& error) {
    const auto* syntax = dynamic_cast<const json::parse_error*>(&error);
    problems.push_back({"", fmt::format("not valid JSON: {}",
                                        syntax != nullptr ? explain(*syntax) : "a number is out of range")});
  }
  return std::nullopt;
}

// Moves the problems of one source to `all`, prefixed with the source's name.
void collect(std::string_view source, Problems found, Problems& all) {
  for (Problem& problem : found) {
    problem.text = fmt::format("{}: {}", source, problem.text);
    all.push_back(std::move(problem));
  }
}

// Returns whether the file contains a JSON object.
bool apply_file(std::string_view text, std::string_view name, Config& config, Problems& all) {
  Problems found;
  const auto document = parse_document(text, Comments::allowed, found);
  if (document) read_settings(*document, {}, config, found);
  collect(escaped(name), std::move(found), all);
  return document && document->is_object();
}

json override_value(const std::string& text) {
  Problems not_json;
  if (auto value = parse_document(text, Comments::refused, not_json)) return *std::move(value);
  return text;
}

void apply_override(const std::string& override_text, Config& config, Problems& all) {
  constexpr std::string_view source = "--set";
  const auto equals = override_text.find('=');
  if (equals == std::string::npos || equals == 0 || !base::is_utf8(override_text)) {
    Problem problem{"", fmt::format("{} is wrong: expected key=value in UTF-8, such as tracker.items=500000",
                                    in_quotes(override_text))};
    return collect(source, {std::move(problem)}, all);
  }
  const std::string key = override_text.substr(0, equals);
  const std::string text = override_text.substr(equals + 1);
  const std::vector<std::string_view> known = known_keys();
  if (std::ranges::find(known, key) == known.end()) return collect(source, {unknown_key(key, known)}, all);
  json document;
  document[pointer_to(key)] = override_value(text);
  Problems found;
  read_settings(document, text, config, found);
  collect(source, std::move(found), all);
}

// Adds the problems of the resulting configuration, except those of settings that already have a problem:
// such a setting does not have the intended value.
void add_invalid(const Config& config, Problems& all) {
  const Problems known = all;
  for (Problem& problem : find_problems(config)) {
    const bool is_known =
        std::ranges::any_of(known, [&](const Problem& other) { return related(other.key, problem.key); });
    if (!is_known) all.push_back(std::move(problem));
  }
}

base::Error to_error(const Problems& problems) {
  std::string message;
  for (const Problem& problem : std::span(problems).first(std::min(problems.size(), lines_max))) {
    if (!message.empty()) message += '\n';
    message += problem.text;
  }
  if (problems.size() > lines_max) message += fmt::format("\nand {} more", problems.size() - lines_max);
  return {std::make_error_code(std::errc::invalid_argument), std::move(message)};
}

}  // namespace

base::Result<Config> load_text(std::string_view text, std::string_view name,
                               std::span<const std::string> overrides) {
  Config config;
  Problems problems;
  const bool readable = apply_file(text, name, config, problems);
  for (const std::string& override_text : overrides) apply_override(override_text, config, problems);
  // If the file could not be read, "node.name is required" and the like would be misleading.
  if (readable) add_invalid(config, problems);
  if (!problems.empty()) return to_error(problems);
  return config;
}

base::Result<Config> load(const std::optional<std::filesystem::path>& file,
                          std::span<const std::string> overrides) {
  const std::filesystem::path path = file.value_or(default_file);
  base::PosixFileSystem files;
  const auto text = files.read(path, file_bytes_max);
  if (text) return load_text(*text, path.native(), overrides);
  const bool missing = text.error().code == std::errc::no_such_file_or_directory;
  if (file || !missing) return text.error();
  auto config = load_text("{}", path.native(), overrides);
  if (config) return config;
  return base::Error(config.error().code,
                     fmt::format("{}\n{} does not exist: name another file with --config",
                                 config.error().message, path.native()));
}

}  // namespace spoor::config
