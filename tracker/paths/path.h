// Logical paths (`bucket/prefix/object`), and marks on them. Every path from outside is normalised here once;
// all other functions require normalised paths.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace spoor::tracker {

inline constexpr std::size_t path_bytes_max = 4096;
inline constexpr std::size_t component_bytes_max = 255;

enum class MarkKind {
  dir,   // The path may be a directory: marks every prefix and the path itself.
  file,  // The path is a file: marks its parents only.
  tree,  // Everything below the path may have changed.
};

// "dir", "file" or "tree"; nullopt for any other text.
std::optional<MarkKind> parse_mark_kind(std::string_view text);

// A mark to be made. The path is normalised.
struct Mark {
  std::string path;
  MarkKind kind = MarkKind::dir;
};

// Removes leading `/` and `./`, trailing `/`, empty and `.` components. Bytes are otherwise opaque. Fails
// with Errc::invalid_path (`..`, a NUL byte, or an empty result) or Errc::path_too_long.
base::Result<std::string> normalise_path(std::string_view raw);

// Whether the path is normalised: a check of paths that must have been normalised before they were stored or
// sent.
bool is_normalised(std::string_view path);

// Iterates over the components of a normalised path.
//
//   for (ComponentCursor at(path); at.next();) use(at.component(), at.prefix());
class ComponentCursor {
 public:
  explicit ComponentCursor(std::string_view path) : path_(path) {}

  // Moves to the next component, if there is one.
  bool next();

  // The current component, and the path up to its end.
  std::string_view component() const { return path_.substr(begin_, end_ - begin_); }
  std::string_view prefix() const { return path_.substr(0, end_); }
  bool is_last() const { return end_ == path_.size(); }

 private:
  std::string_view path_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool started_ = false;
};

// Appends a component to a normalised path; "" is the root.
std::string join_path(std::string_view directory, std::string_view name);

// The path of the parent; "" for a top-level path, and for the root itself.
std::string_view parent_path(std::string_view path);

// Whether a walk in depth and by name comes to `a` before `b`.
bool is_before_in_walk(std::string_view a, std::string_view b);

}  // namespace spoor::tracker
