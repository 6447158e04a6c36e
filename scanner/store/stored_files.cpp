#include "scanner/store/stored_files.h"

#include <utility>

namespace spoor::scanner {

base::Result<> StoredFiles::seek_behind(std::string_view name) {
  const auto chunk = store_->find_chunk(directory_, name);
  if (!chunk) return chunk.error();
  next_chunk_ = *chunk;
  const auto is_there = go_to(name);
  if (!is_there) return is_there.error();
  if (*is_there) pop();
  return {};
}

base::Result<const std::string*> StoredFiles::peek() {
  const std::string* const at_end = nullptr;
  while (!name_) {
    if (!chunk_) {
      const auto fetched = fetch();
      if (!fetched) return fetched.error();
      if (!*fetched) return at_end;
    }
    const auto file = chunk_->next();
    if (file) {
      name_ = file->name;
    } else {
      if (!chunk_->ok()) return store_->damage(directory_);
      chunk_.reset();
    }
  }
  return &*name_;
}

base::Result<bool> StoredFiles::go_to(std::string_view name) {
  for (;;) {
    const auto at = peek();
    if (!at) return at.error();
    if (*at == nullptr || **at > name) return false;
    if (**at == name) return true;
    pop();
  }
}

base::Result<bool> StoredFiles::fetch() {
  auto chunk = store_->chunk_from(directory_, next_chunk_);
  if (!chunk) return chunk.error();
  if (!*chunk) return false;
  next_chunk_ = (*chunk)->number + 1;
  bytes_ = std::make_unique<const std::string>(std::move((*chunk)->bytes));
  chunk_.emplace(*bytes_);
  return true;
}

}  // namespace spoor::scanner
