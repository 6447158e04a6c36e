// What a spoord tells the service manager, and the journal.
#include <gmock/gmock.h>

#include <algorithm>
#include <sstream>

#include "tests/daemon/spoord_fixture.h"
#include "tests/support/listening_socket.h"
#include "tests/support/notify_socket.h"

namespace spoor::daemon {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class NotifyTest : public SpoordTest {
 protected:
  void start_notifying(const std::vector<std::string>& variables = {}) {
    std::vector<std::string> command{"env", manager_.variable()};
    command.insert(command.end(), variables.begin(), variables.end());
    start_by(command);
  }

  std::ptrdiff_t position_of(const std::string& text) {
    const auto messages = manager_.messages();
    return std::ranges::find_if(messages, [&](const auto& each) { return each.find(text) != each.npos; }) -
           messages.begin();
  }

  support::NotifySocket manager_;
};

TEST_F(NotifyTest, Ready_IsNotifiedOnceServingAndStoppingBeforeTheEnd) {
  start_notifying();
  EXPECT_EQ(manager_.wait_for("READY=1"), "READY=1\nSTATUS=cycle 1, no peers, journal ok");
  EXPECT_EQ(request("GET", "/readyz").status, 200U);
  EXPECT_EQ(stop(), 0);
  manager_.wait_for("saving the last snapshot");
  EXPECT_LT(position_of("loading"), position_of("READY=1"));
  EXPECT_LT(position_of("STOPPING=1"), position_of("saving the last snapshot"));
}

// Registering in etcd comes last of all that is done before it serves; the one here does not answer.
TEST_F(NotifyTest, WhileLoading_ReadyIsNotNotified) {
  const support::ListeningSocket etcd;
  config_["peers"]["etcd"] = {
      {"endpoints", {"http://" + support::own_loopback() + ":" + std::to_string(etcd.port())}},
      {"url", "http://" + support::own_loopback() + ":7420"}};
  const std::jthread answer([&] {
    etcd.take_one_and_stop([&] {
      manager_.wait_for("STATUS=");
      EXPECT_EQ(manager_.messages(), std::vector<std::string>{"STATUS=loading"});
    });
  });
  start_notifying();
  EXPECT_THAT(manager_.wait_for("READY=1"), HasSubstr("errors: "));
}

TEST_F(NotifyTest, Status_FollowsCycleAndHealthErrors) {
  start_notifying();
  manager_.wait_for("READY=1");
  request("POST", "/v1/peer/cycle", R"({"cluster":"default","current":7})");
  manager_.wait_for("STATUS=cycle 7, no peers, journal ok");
  std::filesystem::rename(directory_ / "drive", directory_ / "unplugged");
  request("POST", "/v1/snapshot");
  EXPECT_THAT(manager_.wait_for("errors: "), HasSubstr((directory_ / "drive").native()));
  std::filesystem::rename(directory_ / "unplugged", directory_ / "drive");
  request("POST", "/v1/snapshot");
  const auto unhealthy = static_cast<std::size_t>(position_of("errors: "));
  manager_.wait_for("STATUS=cycle 7, no peers, journal ok", unhealthy);
}

TEST_F(NotifyTest, Reload_NotifiesItsBeginAndEnd) {
  start_notifying();
  manager_.wait_for("READY=1");
  const std::size_t before = manager_.messages().size();
  daemon_->signal(SIGHUP);
  const std::string reloading = manager_.wait_for("RELOADING=1", before);
  EXPECT_THAT(reloading, testing::MatchesRegex("RELOADING=1\nMONOTONIC_USEC=[0-9]+"));
  EXPECT_EQ(manager_.wait_for("READY=1", before), "READY=1\nSTATUS=cycle 1, no peers, journal ok");
}

TEST_F(NotifyTest, Reload_InvalidConfiguration_ShowsInTheStatus) {
  start_notifying();
  manager_.wait_for("READY=1");
  const std::size_t before = manager_.messages().size();
  std::ofstream(config_file()) << "{";
  daemon_->signal(SIGHUP);
  EXPECT_THAT(manager_.wait_for("READY=1", before), HasSubstr("the changed configuration has errors"));
  write_config();
  daemon_->signal(SIGHUP);
  manager_.wait_for("READY=1\nSTATUS=cycle 1, no peers, journal ok", before);
}

TEST_F(NotifyTest, Watchdog_IsNotifiedFromReadyOn) {
  start_notifying({"WATCHDOG_USEC=200000"});
  manager_.wait_for("WATCHDOG=1");
  const auto first = static_cast<std::size_t>(position_of("WATCHDOG=1"));
  manager_.wait_for("WATCHDOG=1", first + 1);
  EXPECT_LT(position_of("READY=1"), position_of("WATCHDOG=1"));
  EXPECT_EQ(stop(), 0);
}

TEST_F(NotifyTest, NoServiceManager_DaemonStillRuns) {
  start_by({"env", "WATCHDOG_USEC=nonsense"});
  EXPECT_FALSE(daemon_->wait_for("no watchdog: ").empty());
  EXPECT_EQ(stop(), 0);
}

class JournalTest : public SpoordTest {
 protected:
  // As if the standard error that the test reads were the journal.
  const std::string stderr_is_journal =
      R"(JOURNAL_STREAM=$(stat -L -c %d:%i /dev/fd/2); export JOURNAL_STREAM; exec "$@")";

  void start_for_journal() { start_by({"sh", "-c", stderr_is_journal, "sh"}); }

  std::vector<std::string> lines() {
    std::vector<std::string> lines;
    std::istringstream log(daemon_->log());
    for (std::string line; std::getline(log, line);) lines.push_back(line);
    return lines;
  }
};

TEST_F(JournalTest, SystemdJournal_TextLine_HasPriorityAndNoTime) {
  config_["drives"].push_back(directory_ / "absent");
  start_for_journal();
  std::ofstream(config_file()) << R"({"nodes": 1, "drivers": 2})";
  daemon_->signal(SIGHUP);
  daemon_->wait_for("not reloaded");
  EXPECT_EQ(stop(), 0);
  EXPECT_THAT(lines().front(), StartsWith("<6>info    spoord "));
  EXPECT_THAT(daemon_->log(), HasSubstr("\n<3>error   cannot save the snapshot to drive "));
  for (const std::string& line : lines()) {
    EXPECT_THAT(line, testing::ContainsRegex("^<[3-7]>")) << "also a further line of one";
  }
}

TEST_F(JournalTest, SystemdJournal_JsonLine_HasAPriorityPrefix) {
  config_["log"]["format"] = "json";
  config_["auth"]["tokens"] = nlohmann::json::array();
  config_["listen"].push_back({{"unix", directory_ / "socket"}});  // or it would warn
  start_for_journal();
  EXPECT_EQ(stop(), 0);
  for (const std::string& line : lines()) {
    ASSERT_THAT(line, StartsWith("<6>{"));
    EXPECT_TRUE(nlohmann::json::parse(line.substr(3)).contains("time"));
  }
}

TEST_F(JournalTest, SystemdJournal_StartFailure_HasPriorityError) {
  std::ofstream(config_file()) << "{";
  const auto result =
      support::run_command({"sh", "-c", stderr_is_journal, "sh", SPOORD, "--config", config_file()});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, StartsWith("<3>spoord: "));
}

TEST_F(JournalTest, JournalStreamOfAnotherFile_LinesHaveNoPriority) {
  start_by({"env", "JOURNAL_STREAM=1:1"});
  EXPECT_EQ(stop(), 0);
  for (const std::string& line : lines()) EXPECT_THAT(line, StartsWith("20"));
}

}  // namespace
}  // namespace spoor::daemon
