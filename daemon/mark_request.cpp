#include "daemon/mark_request.h"

#include <fmt/core.h>
#include <simdjson.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/api_message.h"
#include "tracker/errors.h"

namespace spoor::daemon {
namespace {

using tracker::MarkKind;

constexpr std::size_t marks_at_a_time = 256;
constexpr std::size_t paths_kept = std::size_t{64} << 10U;
constexpr std::string_view shape_of_paths = "'paths' must be a list of strings";
constexpr std::string_view kinds = "'kind' must be \"dir\", \"file\" or \"tree\"";

Problem invalid(std::string detail) { return {400, "invalid_request", std::move(detail)}; }

// The parser takes up to twelve times a body's size for what no valid request has: values other than strings,
// and objects and lists in others.
bool is_worth_parsing(std::string_view json) {
  bool in_string = false;
  int opened = 0;
  for (std::size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (in_string) {
      if (c == '\\') ++at;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++opened > 2) return false;
    } else if (std::string_view("}]:, \t\r\n").find(c) == std::string_view::npos) {
      return false;
    }
  }
  return true;
}

}  // namespace

// The paths of a request, read twice: first to see whether all are good, then to mark them.
class MarkReader::Paths {
 public:
  Paths(const tracker::NamespaceRules& rules, const tracker::DrivePaths& drive_paths)
      : rules_(rules), drive_paths_(drive_paths) {}

  // Forgets the request before; what it took is used again.
  void begin() {
    seen_.clear();
    problem_.reset();
    filled_ = 0;
    at_ = 0;
    ignored_ = 0;
  }

  // The first reading; false at the first bad path.
  bool check(std::string_view raw) {
    if (tracker::is_normalised(raw)) {  // the usual case
      seen_.push_back(rules_.ignores(raw) ? Seen::ignored : Seen::normal);
      return true;
    }
    const auto path = tracker::normalise_path(raw);
    if (!path) {
      problem_ = path_problem(path.error(), raw, seen_.size());
      return false;
    }
    if (auto refusal = drive_paths_.refusal(raw, *path); !refusal.empty()) {
      problem_ = Problem{400, "invalid_path", std::move(refusal), seen_.size(), tracker::printable(raw)};
      return false;
    }
    seen_.push_back(rules_.ignores(*path) ? Seen::ignored : Seen::other);
    return true;
  }

  // Not everything that many paths took is kept.
  void let_go() {
    if (seen_.capacity() > paths_kept) seen_ = {};
  }

  const std::optional<Problem>& problem() const { return problem_; }

  // The second one, of the same paths in the same order. flush() at its end.
  void mark(std::string_view raw, MarkKind kind, const TakeMarks& take) {
    const Seen seen = seen_[at_++];
    if (seen == Seen::ignored) {
      ++ignored_;
      return;
    }
    if (filled_ == marks_.size()) marks_.emplace_back();
    tracker::Mark& mark = marks_[filled_++];
    mark.kind = kind;
    if (seen == Seen::normal) {
      mark.path.assign(raw);
    } else {
      mark.path = tracker::normalise_path(raw).value();
    }
    if (filled_ == marks_at_a_time) flush(take);
  }

  std::uint64_t flush(const TakeMarks& take) {
    take(std::span(marks_).first(std::exchange(filled_, 0)));
    return ignored_;
  }

 private:
  enum class Seen : std::uint8_t { normal, other, ignored };

  const tracker::NamespaceRules& rules_;
  const tracker::DrivePaths& drive_paths_;
  std::vector<Seen> seen_;
  std::optional<Problem> problem_;
  std::vector<tracker::Mark> marks_;
  std::size_t filled_ = 0;
  std::size_t at_ = 0;
  std::uint64_t ignored_ = 0;
};

// {"paths":[...],"kind":"..."}, and nothing else.
class MarkReader::Json {
 public:
  // What is not of this shape is a problem. The paths stay until the next reading, or let_go().
  std::optional<Problem> read(const std::string& body) {
    if (body.size() > small_body_bytes && !is_worth_parsing(body)) {
      // Slower, but takes no memory.
      if (!nlohmann::json::accept(body)) return Problem{400, "invalid_json", "the body is not JSON"};
      return invalid("the body must be an object of strings: {\"paths\":[...],\"kind\":\"dir\"}");
    }
    simdjson::dom::element root;
    simdjson::error_code error{};
    if (body.capacity() - body.size() >= simdjson::SIMDJSON_PADDING) {
      constexpr bool needs_copy = false;  // there is room for what it reads beyond the end
      error = parser_.parse(body.data(), body.size(), needs_copy).get(root);
    } else {
      error = parser_.parse(body).get(root);
    }
    if (error)
      return Problem{400, "invalid_json", fmt::format("the body is not JSON: {}", error_message(error))};
    return read(root);
  }

  const simdjson::dom::array& paths() const { return paths_; }
  MarkKind kind() const { return kind_; }

  // Not everything that a large body took is kept.
  void let_go() {
    if (parser_.capacity() > small_body_bytes) parser_ = simdjson::dom::parser();
  }

 private:
  std::optional<Problem> read(simdjson::dom::element root) {
    simdjson::dom::object object;
    if (root.get(object)) return invalid("the body must be an object: {\"paths\":[...],\"kind\":\"dir\"}");
    bool has_paths = false;
    bool has_kind = false;
    kind_ = MarkKind::dir;
    for (const auto& [name, value] : object) {
      if (name == "paths" && !std::exchange(has_paths, true)) {
        if (value.get(paths_)) return invalid(std::string(shape_of_paths));
      } else if (name == "kind" && !std::exchange(has_kind, true)) {
        std::string_view text;
        const auto kind = value.get(text) ? std::nullopt : tracker::parse_mark_kind(text);
        if (!kind) return invalid(std::string(kinds));
        kind_ = *kind;
      } else {
        return invalid(
            fmt::format("the member '{}' is unknown or given twice; 'paths' and 'kind' are accepted",
                        tracker::printable(name)));
      }
    }
    if (!has_paths) return invalid("'paths' is missing");
    return std::nullopt;
  }

  simdjson::dom::parser parser_;
  simdjson::dom::array paths_;
  MarkKind kind_ = MarkKind::dir;
};

MarkReader::MarkReader(const tracker::NamespaceRules& rules, const tracker::DrivePaths& drive_paths)
    : json_(std::make_unique<Json>()), paths_(std::make_unique<Paths>(rules, drive_paths)) {}

MarkReader::~MarkReader() = default;

boost::system::result<std::uint64_t, Problem> MarkReader::read(const HttpRequest& request,
                                                               const TakeMarks& take) {
  if (auto refused = refuse_content_encoding(request)) return *std::move(refused);
  const bool is_json = has_media_type(request, "application/json");
  if (!is_json && !has_media_type(request, "text/plain")) {
    return Problem{415, "unsupported_media_type",
                   fmt::format("the Content-Type '{}' is not known here; send application/json or text/plain",
                               tracker::printable(request.content_type))};
  }
  auto read = is_json ? read_json(request, take) : read_text(request, take);
  json_->let_go();
  paths_->let_go();
  return read;
}

boost::system::result<std::uint64_t, Problem> MarkReader::read_json(const HttpRequest& request,
                                                                    const TakeMarks& take) {
  if (auto unknown = unknown_parameter(request, {})) {  // those of text/plain, perhaps
    unknown->detail += "; a JSON body says 'kind' itself";
    return *std::move(unknown);
  }
  if (auto problem = json_->read(request.body)) return *std::move(problem);
  Paths& paths = *paths_;
  paths.begin();
  for (const simdjson::dom::element element : json_->paths()) {
    std::string_view path;
    if (element.get(path)) return invalid(std::string(shape_of_paths));
    if (!paths.check(path)) return *paths.problem();
  }
  for (const simdjson::dom::element element : json_->paths()) {
    paths.mark(element.get_string().value_unsafe(), json_->kind(), take);
  }
  return {boost::system::in_place_value, paths.flush(take)};
}

boost::system::result<std::uint64_t, Problem> MarkReader::read_text(const HttpRequest& request,
                                                                    const TakeMarks& take) {
  if (auto unknown = unknown_parameter(request, {"kind", "delimiter"})) return *std::move(unknown);
  const auto kind = tracker::parse_mark_kind(request.query_value("kind").value_or("dir"));
  if (!kind) return invalid(std::string(kinds));
  const std::string_view delimiter = request.query_value("delimiter").value_or("newline");
  if (delimiter != "newline" && delimiter != "nul")
    return invalid("'delimiter' must be \"newline\" or \"nul\"");
  const char separator = delimiter == "nul" ? '\0' : '\n';

  const auto each = [&](auto&& use) {
    for (std::string_view rest = request.body; !rest.empty();) {
      const std::size_t end = std::min(rest.find(separator), rest.size());
      if (!use(rest.substr(0, end))) return;
      rest.remove_prefix(std::min(end + 1, rest.size()));  // the last one needs no separator
    }
  };
  Paths& paths = *paths_;
  paths.begin();
  each([&](std::string_view path) { return paths.check(path); });
  if (paths.problem()) return *paths.problem();
  each([&](std::string_view path) {
    paths.mark(path, *kind, take);
    return true;
  });
  return {boost::system::in_place_value, paths.flush(take)};
}

Problem path_problem(const base::Error& error, std::string_view raw, std::size_t index) {
  const bool too_long = error.code == tracker::Errc::path_too_long;
  return {400, too_long ? "path_too_long" : "invalid_path", error.message, index, tracker::printable(raw)};
}

}  // namespace spoor::daemon
