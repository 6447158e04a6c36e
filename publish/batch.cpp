#include "publish/batch.h"

#include <utility>

namespace spoor::publish {

bool Batch::permits(const Event& event) const {
  if (events_.empty()) return true;
  if (events_.back().kind == Event::Kind::reset || event.kind == Event::Kind::scan) return false;
  if (deleted_.contains(event.path)) return false;
  return !replaced_ || (!replaced_->empty() &&
                        !(event.path.starts_with(*replaced_) && event.path[replaced_->size()] == '/'));
}

void Batch::add(Event event) {
  bytes_ += sizeof event + event.path.size() + event.id.size();
  if (event.kind == Event::Kind::replaced && !event.is_file) replaced_ = event.path;
  if (event.kind == Event::Kind::replaced || event.kind == Event::Kind::deleted) deleted_.insert(event.path);
  events_.push_back(std::move(event));
}

void Batch::clear() {
  events_.clear();
  bytes_ = 0;
  deleted_.clear();
  replaced_.reset();
}

}  // namespace spoor::publish
