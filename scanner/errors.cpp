#include "scanner/errors.h"

#include <string>

namespace spoor::scanner {
namespace {

class Category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "spoor.scanner"; }

  std::string message(int value) const override {
    switch (static_cast<Errc>(value)) {
      case Errc::scan_running:
        return "another scan is running";
      case Errc::interrupted:
        return "interrupted";
      case Errc::way_lost:
        return "a directory above was moved or replaced";
      case Errc::database_failed:
        return "the scan database failed";
      case Errc::database_unusable:
        return "not a scan database of this version";
      case Errc::database_damaged:
        return "the scan database is damaged";
      case Errc::consumer_forgotten:
        return "the consumer was forgotten";
    }
    return "unknown error";
  }
};

}  // namespace

const std::error_category& scanner_category() {
  static const Category category;
  return category;
}

std::error_code make_error_code(Errc code) { return {static_cast<int>(code), scanner_category()}; }

base::Error interrupted_error() {
  return {Errc::interrupted, "the scan was stopped; the next scan resumes it"};
}

}  // namespace spoor::scanner
