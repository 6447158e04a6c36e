// Paths as anybody may write them, against a reference that is as simple as the rules.
#include <algorithm>
#include <string>
#include <vector>

#include "base/printable.h"
#include "tests/fuzz/fuzz_support.h"
#include "tracker/errors.h"
#include "tracker/filter/hash.h"
#include "tracker/paths/path.h"

namespace spoor::tracker {
namespace {

using fuzz::require;

struct Reference {
  std::string path;
  bool invalid = false;
  bool too_long = false;
};

Reference refer(std::string_view raw) {
  std::vector<std::string> components(1);
  for (const char byte : raw) {
    if (byte == '/') {
      components.emplace_back();
    } else {
      components.back() += byte;
    }
  }
  Reference reference;
  for (const std::string& component : components) {
    if (component.empty() || component == ".") continue;
    if (component == ".." || component.find('\0') != std::string::npos) reference.invalid = true;
    if (component.size() > component_bytes_max) reference.too_long = true;
    if (!reference.path.empty()) reference.path += '/';
    reference.path += component;
  }
  if (reference.path.empty()) reference.invalid = true;
  if (reference.path.size() > path_bytes_max) reference.too_long = true;
  return reference;
}

void check_refusal(const base::Error& error, const Reference& reference) {
  if (error.code == Errc::path_too_long) {
    require(reference.too_long, "only what is too long is called so");
  } else {
    require(error.code == Errc::invalid_path && reference.invalid, "only what is no path is called so");
  }
}

// A path taken apart and put together is the same; its hashes are those of its prefixes.
void check_components(const std::string& path) {
  std::string built;
  PathHasher hasher;
  for (ComponentCursor at(path); at.next();) {
    require(parent_path(at.prefix()) == built, "the parent is what stands before the last component");
    built = join_path(built, at.component());
    hasher.descend(at.component());
    require(at.prefix() == built, "a prefix is its components, joined");
    require(hasher.hash() == hash_path(built), "a hash on the way down is that of the whole prefix");
    require(at.is_last() == (built.size() == path.size()), "the last component ends the path");
  }
  require(built == path, "the components are the path");
}

void check_printable(std::string_view raw) {
  const std::string text = base::printable(raw);
  require(text.size() <= 210, "what is printed is short");
  require(
      std::none_of(text.begin(), text.end(), [](unsigned char byte) { return byte < 0x20 || byte == 0x7F; }),
      "what is printed has no control characters");
}

void check(std::string_view raw) {
  const Reference reference = refer(raw);
  const auto path = [&] {
    const fuzz::MemoryBound bound(raw.size());
    return normalise_path(raw);
  }();
  check_printable(raw);
  require(path.has_value() == (!reference.invalid && !reference.too_long), "what is a path is taken");
  if (!path) return check_refusal(path.error(), reference);
  require(*path == reference.path, "a path is its components");
  const auto again = normalise_path(*path);
  require(again && *again == *path, "a normalised path stays as it is");
  check_components(*path);
}

}  // namespace
}  // namespace spoor::tracker

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spoor::tracker::check(spoor::fuzz::text_of(data, size));
  return 0;
}
