#include "daemon/api/page.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace spoor::daemon {
namespace {

// No inline code, nothing from another host, and no text that becomes code.
constexpr const char* content_security_policy =
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

constexpr std::pair<std::string_view, std::string_view> content_types[] = {
    {".html", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".svg", "image/svg+xml"},
    {".yaml", "application/yaml"},  // RFC 9512
};

std::string_view content_type_of(std::string_view name) {
  const auto* const known =
      std::ranges::find_if(content_types, [&](const auto& type) { return name.ends_with(type.first); });
  return known == std::end(content_types) ? "text/plain; charset=utf-8" : known->second;
}

// RFC 9110, section 12.5.3: "gzip" or "gzip;q=0.5", not "gzip;q=0".
bool accepts_gzip(std::string_view accepted) {
  constexpr std::string_view blanks = " \t";
  while (!accepted.empty()) {
    std::string_view coding = accepted.substr(0, accepted.find(','));
    accepted.remove_prefix(std::min(coding.size() + 1, accepted.size()));
    coding.remove_prefix(std::min(coding.find_first_not_of(blanks), coding.size()));
    if (!coding.starts_with("gzip")) continue;
    const std::size_t quality = coding.find("q=");
    return quality == std::string_view::npos ||
           coding.find_first_of("123456789", quality) != std::string_view::npos;
  }
  return false;
}

const PageFile* find_file(std::string_view path) {
  const std::string_view name = path == "/" ? "index.html" : path.substr(path.rfind('/') + 1);
  // Of what has a route of its own, no other is one.
  if (path != "/" && name == "index.html") return nullptr;
  if (path.starts_with("/page/") && name == "openapi.yaml") return nullptr;
  const auto found = std::ranges::find(page_files(), name, &PageFile::name);
  return found == page_files().end() ? nullptr : &*found;
}

}  // namespace

HttpResponse page_response(const HttpRequest& request) {
  const PageFile* const file = find_file(request.path);
  if (file == nullptr) return to_response({404, "not_found", "the page has no such file"});
  const bool is_zipped = accepts_gzip(request.accept_encoding);
  const std::string tag = fmt::format("\"{}{}\"", file->digest, is_zipped ? "-gzip" : "");
  HttpResponse response;
  response.headers = {{"Cache-Control", "no-cache"},  // asks each time; another version has another ETag
                      {"ETag", tag},
                      {"Vary", "Accept-Encoding"},
                      {"Content-Security-Policy", content_security_policy},
                      {"Cross-Origin-Resource-Policy", "same-origin"},
                      {"Referrer-Policy", "no-referrer"},
                      {"X-Content-Type-Options", "nosniff"},
                      {"X-Frame-Options", "DENY"}};
  if (request.if_none_match.find(tag) != std::string::npos) {
    response.status = 304;
    return response;
  }
  response.content_type = content_type_of(file->name);
  response.static_body = is_zipped ? file->gzip : file->plain;
  if (is_zipped) response.headers["Content-Encoding"] = "gzip";
  return response;
}

}  // namespace spoor::daemon
