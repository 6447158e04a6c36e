#include "scanner/errors.h"

#include <array>
#include <cstddef>
#include <string>

namespace spoor::scanner {

const std::error_category& scanner_category() {
  static constexpr std::array messages = {"unknown error",
                                          "another scan is running",
                                          "interrupted",
                                          "a directory above was moved or replaced",
                                          "the scan database failed",
                                          "not a scan database of this version",
                                          "the scan database is damaged",
                                          "the consumer was forgotten"};
  static_assert(messages.size() == 1 + static_cast<std::size_t>(Errc::consumer_forgotten));
  class Category final : public std::error_category {
    const char* name() const noexcept override { return "spoor.scanner"; }
    std::string message(int value) const override {
      const auto at = static_cast<std::size_t>(value);
      return messages[at < messages.size() ? at : 0];
    }
  };
  static const Category category;
  return category;
}

std::error_code make_error_code(Errc code) { return {static_cast<int>(code), scanner_category()}; }

base::Error interrupted_error() {
  return {Errc::interrupted, "the scan was stopped; the next scan resumes it"};
}

void throw_if_stopped(const std::stop_token& stop) {
  if (stop.stop_requested()) throw base::Failure(interrupted_error());
}

}  // namespace spoor::scanner
