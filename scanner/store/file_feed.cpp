#include "scanner/store/file_feed.h"

namespace spoor::scanner {

base::Result<bool> FileFeed::update(const DirectoryRow& before, const Files& files, bool differs) {
  bool is_known = before.own.files == 0 && !is_first_;
  if (!is_known) {
    const auto has = store_.has(before.id);
    if (!has) return has.error();
    is_known = *has;
  }
  if (!is_known) {
    const auto added = add(before.id, files);
    if (!added) return added.error();
    return !differs || is_first_;
  }
  if (!differs) return true;
  const auto updated = store_.update(before.id, files, [&](std::string_view name, Change change) {
    return changes_.add_file(before.id, name, change);
  });
  if (!updated) return updated.error();
  return true;
}

}  // namespace spoor::scanner
