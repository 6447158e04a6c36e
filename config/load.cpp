#include "config/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/file_system.h"
#include "config/check.h"
#include "config/errors.h"
#include "config/json_document.h"
#include "config/read.h"
#include "config/suggest.h"

namespace spoor::config {
namespace {

using nlohmann::json;

// Further problems are only counted.
constexpr std::size_t lines_max = 100;

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
  if (document) read_settings(*document, Origin::file, {}, config, found);
  collect(escaped(name), std::move(found), all);
  return document && document->is_object();
}

bool is_utf8(const std::string& text) {
  try {
    static_cast<void>(json(text).dump());
    return true;
  } catch (const json::type_error&) {
    return false;
  }
}

json override_value(const std::string& text) {
  Problems not_json;
  if (auto value = parse_document(text, Comments::refused, not_json)) return *std::move(value);
  return text;
}

void apply_override(const std::string& override_text, Config& config, Problems& all) {
  constexpr std::string_view source = "--set";
  const auto equals = override_text.find('=');
  if (equals == std::string::npos || equals == 0 || !is_utf8(override_text)) {
    Problem problem{"", fmt::format("{} is wrong: expected key=value in UTF-8, such as tracker.items=500000",
                                    in_quotes(override_text))};
    return collect(source, {std::move(problem)}, all);
  }
  const std::string key = override_text.substr(0, equals);
  const std::string text = override_text.substr(equals + 1);
  const std::vector<std::string_view> known = known_keys();
  if (std::ranges::find(known, key) == known.end()) return collect(source, {unknown_key(key, known)}, all);
  json document;
  const auto dot = key.find('.');
  json& place = dot == std::string::npos ? document[key] : document[key.substr(0, dot)][key.substr(dot + 1)];
  place = override_value(text);
  Problems found;
  read_settings(document, Origin::override_text, text, config, found);
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
  return {Errc::config_invalid, std::move(message)};
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
