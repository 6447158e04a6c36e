#include <fmt/core.h>
#include <simdjson.h>

#include <algorithm>
#include <boost/system/result.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/printable.h"
#include "daemon/api/api_message.h"
#include "daemon/api/mark_batch.h"

namespace spoor::daemon {
namespace {

using tracker::MarkKind;

constexpr std::string_view shape_of_paths = "'paths' must be a list of strings";
constexpr std::string_view kinds = "'kind' must be \"dir\", \"file\" or \"tree\"";

Problem invalid(std::string detail) { return {400, "invalid_request", std::move(detail)}; }

// The parser takes up to twelve times a body's size for what no valid request has: values other than strings,
// and objects and lists inside others.
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

// {"paths":[...],"kind":"..."}, and nothing else.
struct JsonMarks {
  simdjson::dom::array paths;  // in the memory of the parser
  MarkKind kind = MarkKind::dir;
};

boost::system::result<JsonMarks, Problem> marks_of(simdjson::dom::element root) {
  simdjson::dom::object object;
  if (root.get(object)) return invalid("the body must be an object: {\"paths\":[...],\"kind\":\"dir\"}");
  JsonMarks marks;
  bool has_paths = false;
  bool has_kind = false;
  for (const auto& [name, value] : object) {
    if (name == "paths" && !std::exchange(has_paths, true)) {
      if (value.get(marks.paths)) return invalid(std::string(shape_of_paths));
    } else if (name == "kind" && !std::exchange(has_kind, true)) {
      std::string_view text;
      const auto kind = value.get(text) ? std::nullopt : tracker::parse_mark_kind(text);
      if (!kind) return invalid(std::string(kinds));
      marks.kind = *kind;
    } else {
      return invalid(fmt::format("the member '{}' is unknown or given twice; 'paths' and 'kind' are accepted",
                                 base::printable(name)));
    }
  }
  if (!has_paths) return invalid("'paths' is missing");
  return marks;
}

boost::system::result<JsonMarks, Problem> parse_json(const std::string& body, simdjson::dom::parser& parser) {
  if (body.size() > MarkBatch::small_body_bytes && !is_worth_parsing(body)) {
    // Slower, but takes no memory.
    if (!nlohmann::json::accept(body)) return Problem{400, "invalid_json", "the body is not JSON"};
    return invalid("the body must be an object of strings: {\"paths\":[...],\"kind\":\"dir\"}");
  }
  // A copy is needed only if there is no room for what the parser reads beyond the end.
  const bool needs_copy = body.capacity() - body.size() < simdjson::SIMDJSON_PADDING;
  simdjson::dom::element root;
  if (const auto error = parser.parse(body.data(), body.size(), needs_copy).get(root)) {
    return Problem{400, "invalid_json", fmt::format("the body is not JSON: {}", error_message(error))};
  }
  return marks_of(root);
}

// Adds a path, the `index`th of its request.
std::optional<Problem> add(MarkBatch& batch, std::string_view path, MarkKind kind, std::size_t index,
                           MarkBatch::Absolute absolute = MarkBatch::Absolute::allowed) {
  const auto added = batch.add(path, kind, absolute);
  if (!added) return path_problem(added.error(), path, index);
  if (!*added) ++batch.counts().ignored;
  return std::nullopt;
}

std::optional<Problem> read_json(const HttpRequest& request, MarkBatch& batch) {
  if (auto unknown = unknown_parameter(request, {})) {  // those of text/plain, perhaps
    unknown->detail += "; a JSON body has 'kind' as a member";
    return unknown;
  }
  const auto marks = parse_json(request.body, batch.json_parser());
  if (!marks) return marks.error();
  std::size_t index = 0;
  for (const simdjson::dom::element element : marks->paths) {
    std::string_view path;
    if (element.get(path)) return invalid(std::string(shape_of_paths));
    if (auto problem = add(batch, path, marks->kind, index++)) return problem;
  }
  return std::nullopt;
}

std::optional<Problem> read_text(const HttpRequest& request, MarkBatch& batch) {
  if (auto unknown = unknown_parameter(request, {"kind", "delimiter", "absolute", "drive"})) return unknown;
  const auto kind = tracker::parse_mark_kind(request.query_value("kind").value_or("dir"));
  if (!kind) return invalid(std::string(kinds));
  const std::string_view delimiter = request.query_value("delimiter").value_or("newline");
  if (delimiter != "newline" && delimiter != "nul")
    return invalid("'delimiter' must be \"newline\" or \"nul\"");
  const char separator = delimiter == "nul" ? '\0' : '\n';
  const std::string_view is_absolute = request.query_value("absolute").value_or("false");
  if (is_absolute != "true" && is_absolute != "false")
    return invalid("'absolute' must be \"true\" or \"false\"");
  const auto absolute =
      is_absolute == "true" ? MarkBatch::Absolute::below_a_drive : MarkBatch::Absolute::allowed;
  if (const auto drive = request.query_value("drive")) batch.name_drive(*drive);

  std::size_t index = 0;
  for (std::string_view rest = request.body; !rest.empty();) {
    const std::size_t end = std::min(rest.find(separator), rest.size());
    if (auto problem = add(batch, rest.substr(0, end), *kind, index++, absolute)) return problem;
    rest.remove_prefix(std::min(end + 1, rest.size()));  // the last one needs no separator
  }
  return std::nullopt;
}

}  // namespace

std::optional<Problem> read_mark_request(const HttpRequest& request, MarkBatch& batch) {
  if (auto refused = refuse_content_encoding(request)) return refused;
  for (const char* const json :
       {"application/json", "application/x-www-form-urlencoded"}) {  // as curl -d sends it
    if (has_media_type(request, json)) return read_json(request, batch);
  }
  if (has_media_type(request, "text/plain")) return read_text(request, batch);
  return Problem{415, "unsupported_media_type",
                 fmt::format("the Content-Type '{}' is not known here; send application/json or text/plain",
                             base::printable(request.content_type))};
}

}  // namespace spoor::daemon
