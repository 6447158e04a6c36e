#include "config/json_document.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

namespace spoor::config {
namespace {

using nlohmann::json;

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

}  // namespace

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

}  // namespace spoor::config
