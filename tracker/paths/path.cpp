#include "tracker/paths/path.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/printable.h"
#include "tracker/errors.h"
#include "tracker/paths/byte_scan.h"

namespace spoor::tracker {
namespace {

bool is_normalised_component(std::string_view component) {
  if (component.empty() || component.size() > component_bytes_max) return false;
  return component[0] != '.' || (component != "." && component != "..");
}

}  // namespace

std::optional<MarkKind> parse_mark_kind(std::string_view text) {
  if (text == "dir") return MarkKind::dir;
  if (text == "file") return MarkKind::file;
  if (text == "tree") return MarkKind::tree;
  return std::nullopt;
}

base::Result<std::string> normalise_path(std::string_view raw) {
  if (is_normalised(raw)) return std::string(raw);  // the usual case
  if (raw.find('\0') != std::string_view::npos) {
    return base::Error(Errc::invalid_path,
                       fmt::format("the path '{}' holds a NUL byte", base::printable(raw)));
  }
  std::string path;
  path.reserve(std::min(raw.size(), path_bytes_max));
  for (ComponentCursor at(raw); at.next();) {
    const std::string_view component = at.component();
    if (component.empty() || component == ".") continue;
    if (component == "..") {
      return base::Error(
          Errc::invalid_path,
          fmt::format("the path '{}' holds '..'; give the path it leads to", base::printable(raw)));
    }
    if (component.size() > component_bytes_max) {
      return base::Error(Errc::path_too_long,
                         fmt::format("a component of the path '{}' has {} bytes; at most {} are allowed",
                                     base::printable(raw), component.size(), component_bytes_max));
    }
    if (!path.empty()) path += '/';
    path += component;
    if (path.size() > path_bytes_max) {
      return base::Error(Errc::path_too_long, fmt::format("the path '{}' has more than {} bytes",
                                                          base::printable(raw), path_bytes_max));
    }
  }
  if (path.empty()) {
    return base::Error(
        Errc::invalid_path,
        fmt::format("the path '{}' is empty or the root; give a path below it", base::printable(raw)));
  }
  return path;
}

bool is_normalised(std::string_view path) {
  if (path.empty() || path.size() > path_bytes_max || path.find('\0') != std::string_view::npos) return false;
  std::size_t begin = 0;
  for (std::size_t block = 0; block < path.size(); block += separators_bytes) {
    for (std::uint64_t ends = separators_in(path.substr(block)); ends != 0; ends &= ends - 1) {
      const std::size_t end = block + static_cast<std::size_t>(std::countr_zero(ends));
      if (!is_normalised_component(path.substr(begin, end - begin))) return false;
      begin = end + 1;
    }
  }
  return is_normalised_component(path.substr(begin));
}

bool ComponentCursor::next() {
  if (started_ && is_last()) return false;
  begin_ = started_ ? end_ + 1 : 0;
  started_ = true;
  end_ = std::min(path_.find('/', begin_), path_.size());
  return !path_.empty();
}

std::string join_path(std::string_view directory, std::string_view name) {
  std::string path;
  path.reserve(directory.size() + 1 + name.size());
  path += directory;
  if (!directory.empty()) path += '/';
  path += name;
  return path;
}

std::string_view parent_path(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
}

bool is_before_in_walk(std::string_view a, std::string_view b) {
  // A name that ends comes before a longer one.
  const auto rank = [](char each) { return each == '/' ? 0 : static_cast<unsigned char>(each); };
  return std::ranges::lexicographical_compare(a, b, {}, rank, rank);
}

}  // namespace spoor::tracker
