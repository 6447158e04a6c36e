#include "tracker/namespace_rules.h"

#include <fmt/core.h>
#include <fnmatch.h>

#include <algorithm>

#include "base/checksum.h"
#include "tracker/path.h"

namespace spoor::tracker {
namespace {

bool is_reserved(std::string_view top_level_name) {
  return top_level_name == ".spoor" || top_level_name == ".minio.sys";
}

bool matches(const std::string& glob, std::string_view path, std::string_view name) {
  if (glob.find('/') == std::string::npos) return ::fnmatch(glob.c_str(), std::string(name).c_str(), 0) == 0;
  return ::fnmatch(glob.c_str(), std::string(path).c_str(), FNM_PATHNAME) == 0;
}

bool is_lower_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool looks_like_ipv4(std::string_view name) {
  return std::count(name.begin(), name.end(), '.') == 3 &&
         std::all_of(name.begin(), name.end(), [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

}  // namespace

bool is_s3_bucket_name(std::string_view name) {
  if (name.size() < 3 || name.size() > 63) return false;
  if (!is_lower_or_digit(name.front()) || !is_lower_or_digit(name.back())) return false;
  if (name.find("..") != std::string_view::npos || looks_like_ipv4(name)) return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return is_lower_or_digit(c) || c == '.' || c == '-'; });
}

bool NamespaceRules::ignores(std::string_view path) const {
  for (ComponentCursor at(path); at.next();) {
    if (ignores_child(at.prefix(), at.component())) return true;
    if (options_.exclude.empty()) return false;  // the other rules are about the first component only
  }
  return false;
}

bool NamespaceRules::ignores_child(std::string_view path, std::string_view name) const {
  const bool is_top_level = path.size() == name.size();
  if (is_top_level && (is_reserved(name) || (options_.s3_bucket_names && !is_s3_bucket_name(name))))
    return true;
  return std::any_of(options_.exclude.begin(), options_.exclude.end(),
                     [&](const std::string& glob) { return matches(glob, path, name); });
}

std::string NamespaceRules::fingerprint() const {
  std::vector<std::string> globs = options_.exclude;
  std::sort(globs.begin(), globs.end());
  std::string text = options_.s3_bucket_names ? "s3" : "any";
  for (const std::string& glob : globs) text += fmt::format("|{}:{}", glob.size(), glob);
  return text;
}

std::uint64_t NamespaceRules::digest() const { return base::checksum(fingerprint()); }

}  // namespace spoor::tracker
