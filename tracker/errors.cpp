#include "tracker/errors.h"

#include <array>
#include <string>

namespace spoor::tracker {
namespace {

class Category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "spoor.tracker"; }

  std::string message(int value) const override {
    constexpr std::array messages{"unknown error",  // 0, and any value beyond the last
                                  "invalid path",
                                  "path too long",
                                  "invalid filter shape",
                                  "snapshot corrupt",
                                  "snapshot of another node",
                                  "unknown version",
                                  "journal corrupt",
                                  "not durable",
                                  "not the known drive"};
    static_assert(messages.size() == static_cast<std::size_t>(Errc::drive_refused) + 1);
    const auto at = static_cast<std::size_t>(value);
    return messages[at < messages.size() ? at : 0];
  }
};

}  // namespace

std::error_code make_error_code(Errc code) {
  static const Category category;
  return {static_cast<int>(code), category};
}

}  // namespace spoor::tracker
