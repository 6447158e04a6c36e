#include "config/logging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

namespace spoor::config {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string evil = "peer evil\n2026-01-01T00:00:00.000Z error   forged \x1b[2J";

std::string logged(config::LogFormat format, const std::string& message) {
  ::unsetenv("JOURNAL_STREAM");
  const auto before = spdlog::default_logger();
  testing::internal::CaptureStderr();
  set_up_logging({.level = config::LogLevel::info, .format = format});
  spdlog::warn("{}", message);
  std::string text = testing::internal::GetCapturedStderr();
  spdlog::set_default_logger(before);
  return text;
}

TEST(LoggingTest, TextFormat_NewlineAndEscapeInMessage_ForgeNoEvent) {
  const std::string text = logged(config::LogFormat::text, evil);
  EXPECT_THAT(text, Not(HasSubstr("\n2026")));
  EXPECT_THAT(text, HasSubstr("warning peer evil\n    2026-01-01T00:00:00.000Z error   forged \\x1b[2J\n"));
}

TEST(LoggingTest, JsonFormat_MessageIsExact) {
  const auto event = nlohmann::json::parse(logged(config::LogFormat::json, evil));
  EXPECT_EQ(event["message"], evil);
}

// As long as nobody reads standard error, events are lost, and the program goes on.
TEST(LoggingTest, ClosedPipe_DoesNotEndTheProcess) {
  EXPECT_EXIT(
      {
        int pipe[2];
        if (::pipe(pipe) != 0 || ::dup2(pipe[1], STDERR_FILENO) < 0) ::_exit(1);
        ::close(pipe[0]);
        ::close(pipe[1]);
        set_up_logging({});
        spdlog::warn("nobody reads this");
        ::_exit(7);
      },
      testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace spoor::config
