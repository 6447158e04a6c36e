#include "config/logging.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdio>
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

// Writes until no more fits. Both ends block afterwards, as before.
void fill(int writer) {
  const int flags = ::fcntl(writer, F_GETFL);
  ::fcntl(writer, F_SETFL, flags | O_NONBLOCK);
  const std::string text(4096, 'x');
  while (::write(writer, text.data(), text.size()) > 0) {
  }
  while (::write(writer, text.data(), 1) > 0) {
  }
  ::fcntl(writer, F_SETFL, flags);
}

std::string read_all(int reader) {
  std::string all;
  std::string text(4096, '\0');
  pollfd ready{reader, POLLIN, 0};
  while (::poll(&ready, 1, 0) > 0) {
    const ssize_t count = ::read(reader, text.data(), text.size());
    if (count <= 0) break;
    all.append(text, 0, static_cast<std::size_t>(count));
  }
  return all;
}

// Standard error becomes `ends[1]`. Exits with 7, and prints to it what a reader found after a pause.
void log_while_reader_pauses(const std::array<int, 2>& ends) {
  ::alarm(60);  // ends an event that waits
  const int before = ::dup(STDERR_FILENO);
  ::dup2(ends[1], STDERR_FILENO);
  set_up_logging({});
  fill(ends[1]);
  for (int i = 0; i < 3; ++i) spdlog::warn("lost");
  read_all(ends[0]);
  spdlog::warn("first");
  spdlog::warn("second");
  spdlog::warn("{}", std::string(100'000, 'y'));
  const std::string text = read_all(ends[0]);
  ::dup2(before, STDERR_FILENO);
  std::fputs(text.substr(0, 500).c_str(), stderr);
  ::_exit(7);
}

constexpr const char* lost_and_found = "3 events were lost here.*\n.* first\n.* second\n.*yyy";

TEST(LoggingTest, PipeThatIsNotRead_LosesEventsAndCountsThem) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  EXPECT_EXIT(log_while_reader_pauses(ends), testing::ExitedWithCode(7), lost_and_found);
}

TEST(LoggingTest, SocketThatIsNotRead_LosesEventsAndCountsThem) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  EXPECT_EXIT(log_while_reader_pauses(ends), testing::ExitedWithCode(7), lost_and_found);
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
