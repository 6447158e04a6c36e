// The page for browsers, and openapi.yaml: files that the build embeds in the program
// (cmake/embed_page.cmake).
#pragma once

#include <span>
#include <string_view>

#include "daemon/http/http_message.h"

namespace spoor::daemon {

// A file of daemon/page/.
struct PageFile {
  std::string_view name;
  std::string_view digest;  // of its content, in hexadecimal
  std::string_view plain;
  std::string_view gzip;
};

// All of them, in generated code.
std::span<const PageFile> page_files();

inline constexpr std::string_view page_route = "/page/{name}";  // all files but index.html, which is at "/"

// Whether `path` is below /page/.
inline bool is_page_file(std::string_view path) {
  constexpr std::string_view folder = "/page/";
  return path.starts_with(folder) && path.size() > folder.size() &&
         path.find('/', folder.size()) == std::string_view::npos;
}

// The file at the path of the request; 404 if there is none.
HttpResponse page_response(const HttpRequest& request);

}  // namespace spoor::daemon
