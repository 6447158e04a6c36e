#include "tracker/errors.h"

#include <string>

namespace spoor::tracker {
namespace {

class Category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "spoor.tracker"; }

  std::string message(int value) const override {
    switch (static_cast<Errc>(value)) {
      case Errc::invalid_path:
        return "invalid path";
      case Errc::path_too_long:
        return "path too long";
      case Errc::invalid_shape:
        return "invalid filter shape";
      case Errc::snapshot_corrupt:
        return "snapshot corrupt";
      case Errc::snapshot_foreign:
        return "snapshot of another node";
      case Errc::snapshot_unknown:
        return "unknown version";
      case Errc::journal_corrupt:
        return "journal corrupt";
      case Errc::not_durable:
        return "not durable";
      case Errc::drive_refused:
        return "not the known drive";
    }
    return "unknown error";
  }
};

}  // namespace

const std::error_category& tracker_category() {
  static const Category category;
  return category;
}

std::error_code make_error_code(Errc code) { return {static_cast<int>(code), tracker_category()}; }

}  // namespace spoor::tracker
