#include "daemon/mark_request.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/algorithm/string/predicate.hpp>
#include <boost/algorithm/string/trim.hpp>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "tracker/errors.h"

namespace spoor::daemon {
namespace {

using nlohmann::json;
using tracker::MarkKind;

constexpr std::string_view kinds = "'kind' must be \"dir\", \"file\" or \"tree\"";

Problem invalid(std::string detail) { return {400, "invalid_request", std::move(detail)}; }

// Reads {"paths":[...],"kind":"..."} as it comes, without a document in memory: whatever else the
// body holds ends the reading at once.
class JsonMarks final : public json::json_sax_t {
 public:
  std::vector<std::string> paths;
  std::optional<std::string> kind;
  std::optional<Problem> problem;
  bool has_paths = false;

  bool start_object(std::size_t) override {
    if (place_ != Place::outside) return refuse();
    place_ = Place::object;
    return true;
  }
  bool key(string_t& name) override {
    if (name == "paths" && !has_paths) {
      place_ = Place::paths_value;
    } else if (name == "kind" && !kind) {
      place_ = Place::kind_value;
    } else {
      return fail(fmt::format("the member '{}' is unknown or given twice; 'paths' and 'kind' are accepted",
                              tracker::printable(name)));
    }
    return true;
  }
  bool start_array(std::size_t) override {
    if (place_ != Place::paths_value) return refuse();
    place_ = Place::paths;
    has_paths = true;
    return true;
  }
  bool string(string_t& value) override {
    if (place_ == Place::paths) {
      paths.push_back(std::move(value));
    } else if (place_ == Place::kind_value) {
      kind = std::move(value);
      place_ = Place::object;
    } else {
      return refuse();
    }
    return true;
  }
  bool end_array() override {
    place_ = Place::object;
    return true;
  }
  bool end_object() override {
    place_ = Place::outside;
    return true;
  }
  bool null() override { return refuse(); }
  bool boolean(bool) override { return refuse(); }
  bool number_integer(number_integer_t) override { return refuse(); }
  bool number_unsigned(number_unsigned_t) override { return refuse(); }
  bool number_float(number_float_t, const string_t&) override { return refuse(); }
  bool binary(binary_t&) override { return refuse(); }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    problem = Problem{400, "invalid_json",
                      fmt::format("the body is not JSON, at byte {}: {}", position, error.what())};
    return false;
  }

 private:
  enum class Place { outside, object, paths_value, paths, kind_value };

  bool fail(std::string detail) {
    problem = invalid(std::move(detail));
    return false;
  }
  bool refuse() {
    switch (place_) {
      case Place::kind_value:
        return fail(std::string(kinds));
      case Place::paths:
      case Place::paths_value:
        return fail("'paths' must be a list of strings");
      default:
        return fail("the body must be an object: {\"paths\":[...],\"kind\":\"dir\"}");
    }
  }

  Place place_ = Place::outside;
};

// Takes raw paths one by one and keeps the first problem.
class Collector {
 public:
  Collector(MarkKind kind, const tracker::NamespaceRules& rules) : kind_(kind), rules_(rules) {}

  bool add(std::string_view raw) {
    const std::size_t index = count_++;
    auto path = tracker::normalise_path(raw);
    if (!path) {
      problem_ = path_problem(path.error(), raw, index);
      return false;
    }
    if (rules_.ignores(*path)) {
      ++request_.ignored;
    } else {
      request_.marks.push_back({*std::move(path), kind_});
    }
    return true;
  }

  boost::system::result<MarkRequest, Problem> take() {
    if (problem_) return *std::move(problem_);
    return std::move(request_);
  }

 private:
  MarkKind kind_;
  const tracker::NamespaceRules& rules_;
  std::size_t count_ = 0;
  MarkRequest request_;
  std::optional<Problem> problem_;
};

// A mark that is not what was meant would be acknowledged all the same.
std::optional<Problem> unknown_parameter(const HttpRequest& request,
                                         std::initializer_list<const char*> known) {
  for (const auto& [name, value] : request.query) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return invalid(
        fmt::format("the query parameter '{}' is not known for this Content-Type; a JSON body takes none "
                    "and says 'kind' itself, text/plain takes 'kind' and 'delimiter'",
                    tracker::printable(name)));
  }
  return std::nullopt;
}

boost::system::result<MarkRequest, Problem> parse_json(const HttpRequest& request,
                                                       const tracker::NamespaceRules& rules) {
  if (auto unknown = unknown_parameter(request, {})) return *std::move(unknown);
  JsonMarks body;
  static_cast<void>(json::sax_parse(request.body, &body));  // what it says is in body.problem
  if (body.problem) return *body.problem;
  if (!body.has_paths) return invalid("'paths' is missing");
  const auto kind = tracker::parse_mark_kind(body.kind.value_or("dir"));
  if (!kind) return invalid(std::string(kinds));
  Collector collector(*kind, rules);
  for (const std::string& path : body.paths) {
    if (!collector.add(path)) break;
  }
  return collector.take();
}

boost::system::result<MarkRequest, Problem> parse_text(const HttpRequest& request,
                                                       const tracker::NamespaceRules& rules) {
  if (auto unknown = unknown_parameter(request, {"kind", "delimiter"})) return *std::move(unknown);
  const auto kind = tracker::parse_mark_kind(request.query_value("kind").value_or("dir"));
  if (!kind) return invalid(std::string(kinds));
  const std::string_view delimiter = request.query_value("delimiter").value_or("newline");
  if (delimiter != "newline" && delimiter != "nul")
    return invalid("'delimiter' must be \"newline\" or \"nul\"");
  const char separator = delimiter == "nul" ? '\0' : '\n';

  Collector collector(*kind, rules);
  std::string_view rest = request.body;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(separator), rest.size());
    if (!collector.add(rest.substr(0, end))) break;
    rest.remove_prefix(std::min(end + 1, rest.size()));  // the last one needs no separator
  }
  return collector.take();
}

}  // namespace

Problem path_problem(const base::Error& error, std::string_view raw, std::size_t index) {
  const bool too_long = error.code == tracker::Errc::path_too_long;
  return {400, too_long ? "path_too_long" : "invalid_path", error.message, index, tracker::printable(raw)};
}

boost::system::result<MarkRequest, Problem> parse_mark_request(const HttpRequest& request,
                                                               const tracker::NamespaceRules& rules) {
  if (!request.content_encoding.empty() && !boost::algorithm::iequals(request.content_encoding, "identity")) {
    return Problem{415, "unsupported_media_type",
                   fmt::format("the Content-Encoding '{}' is not known here; send the body as it is",
                               tracker::printable(request.content_encoding))};
  }
  std::string type = request.content_type.substr(0, request.content_type.find(';'));
  boost::algorithm::trim(type);
  if (boost::algorithm::iequals(type, "application/json")) return parse_json(request, rules);
  if (boost::algorithm::iequals(type, "text/plain")) return parse_text(request, rules);
  return Problem{415, "unsupported_media_type",
                 fmt::format("the Content-Type '{}' is not known here; send application/json or text/plain",
                             tracker::printable(request.content_type))};
}

}  // namespace spoor::daemon
