// Logical paths (`bucket/prefix/object`), and what a mark says about one. Paths are normalised
// here, once, wherever they come in; everything else takes normalised ones only.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/printable.h"

namespace spoor::tracker {

inline constexpr std::size_t path_bytes_max = 4096;
inline constexpr std::size_t component_bytes_max = 255;

enum class MarkKind {
  dir,   // Marks every prefix and the path itself: right for whatever may be a directory.
  file,  // The path is a file: marks its parents only.
  tree,  // Everything below the path may have changed.
};

// "dir", "file" or "tree"; anything else is nothing.
std::optional<MarkKind> parse_mark_kind(std::string_view text);

// A mark to be made, its path normalised.
struct Mark {
  std::string path;
  MarkKind kind = MarkKind::dir;
};

// Drops leading `/` and `./`, trailing `/`, empty and `.` components. Bytes are otherwise opaque.
// Fails with Errc::invalid_path (`..`, a NUL byte, nothing left) or Errc::path_too_long.
base::Result<std::string> normalise_path(std::string_view raw);

// Whether normalising the path would leave it as it is: for paths that were normalised before they were
// stored or sent.
bool is_normalised(std::string_view path);

// Steps through the components of a normalised path.
//
//   for (ComponentCursor at(path); at.next();) use(at.component(), at.prefix());
class ComponentCursor {
 public:
  explicit ComponentCursor(std::string_view path) : path_(path) {}

  // Moves to the next component, if there is one.
  bool next();

  // The component the cursor stands on, and the path up to its end.
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

using base::printable;  // for a path in a message

}  // namespace spoor::tracker
