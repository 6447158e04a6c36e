#include "config/errors.h"

#include <string>

namespace spoor::config {
namespace {

class Category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "spoor.config"; }

  std::string message(int code) const override {
    switch (static_cast<Errc>(code)) {
      case Errc::config_invalid:
        return "the configuration is invalid";
    }
    return "unknown error";
  }
};

}  // namespace

const std::error_category& error_category() {
  static const Category category;
  return category;
}

std::error_code make_error_code(Errc code) { return {static_cast<int>(code), error_category()}; }

}  // namespace spoor::config
