#include "daemon/process/service_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstdlib>
#include <future>
#include <thread>

#include "tests/support/notify_socket.h"

namespace spoor::daemon {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class ServiceManagerTest : public testing::Test {
 protected:
  // Before any thread of the manager's: the environment is the process's.
  ServiceManagerTest() {
    ::setenv("NOTIFY_SOCKET", socket_.path().c_str(), 1);
    ::setenv("WATCHDOG_USEC", "20000", 1);
  }
  ~ServiceManagerTest() override {
    ::unsetenv("NOTIFY_SOCKET");
    ::unsetenv("WATCHDOG_USEC");
  }

  // How many messages there are once all that was sent up to now has come, and the test's own.
  std::size_t settled_messages() {
    ServiceManager(context_).notify_status("settled");
    socket_.wait_for("STATUS=settled", settled_);
    return settled_ = socket_.messages().size();
  }

  support::NotifySocket socket_;
  boost::asio::io_context context_{1};
  std::size_t settled_ = 0;
};

TEST_F(ServiceManagerTest, Ready_IsNotifiedOnceTheLoopRuns) {
  ServiceManager manager(context_);
  manager.serve([] { return "well"; });
  EXPECT_EQ(settled_messages(), 1U) << "the test's own";
  boost::asio::post(context_, [&] { manager.stop(); });
  context_.run();
  settled_messages();
  const auto messages = socket_.messages();
  EXPECT_EQ(messages[1], "READY=1\nSTATUS=well");
  EXPECT_THAT(messages, Contains(HasSubstr("STOPPING=1")));
}

TEST_F(ServiceManagerTest, LoopOfAnotherThreadHangs_WatchdogIsNotNotified) {
  boost::asio::io_context other(1);
  ServiceManager manager(context_, {&other});
  manager.serve([] { return "well"; });
  context_.poll();
  settled_messages();
  EXPECT_THAT(socket_.messages(), Not(Contains(HasSubstr("WATCHDOG=1"))));
  other.run();
  context_.restart();
  context_.poll();
  settled_messages();
  EXPECT_THAT(socket_.messages(), Contains(HasSubstr("WATCHDOG=1")));
  manager.stop();
}

// It went on to the next one, which nobody ran any more, and to another pause.
TEST_F(ServiceManagerTest, StopWhileAnotherLoopIsChecked_WatchdogIsNotNotified) {
  boost::asio::io_context other(1);
  boost::asio::io_context ended(1);
  ServiceManager manager(context_, {&other, &ended});
  manager.serve([] { return "well"; });
  context_.poll();
  manager.stop();
  other.run();
  context_.restart();
  context_.run();
  settled_messages();
  EXPECT_THAT(socket_.messages(), Not(Contains(HasSubstr("WATCHDOG=1"))));
}

TEST_F(ServiceManagerTest, LoopHangs_WatchdogIsNotNotified) {
  ServiceManager manager(context_);
  manager.serve([] { return "well"; });
  const std::jthread thread([this] { context_.run(); });
  const auto fed = [&](std::size_t from) { socket_.wait_for("WATCHDOG=1", from); };
  fed(settled_messages());
  fed(settled_messages());
  // The loop hangs in a handler. Eight periods are the manager's chance to feed it all the same.
  std::promise<void> hangs;
  std::promise<void> goes_on;
  boost::asio::post(context_, [&] {
    hangs.set_value();
    goes_on.get_future().wait();
  });
  hangs.get_future().wait();
  const std::size_t before = settled_messages();
  EXPECT_FALSE(socket_.comes_within(std::chrono::milliseconds(160), before));
  goes_on.set_value();
  fed(before);
  boost::asio::post(context_, [&] { manager.stop(); });
}

TEST_F(ServiceManagerTest, AfterTheStop_WatchdogIsNotNotified) {
  ServiceManager manager(context_);
  manager.serve([] { return "well"; });
  std::jthread thread([this] { context_.run(); });
  socket_.wait_for("WATCHDOG=1");
  boost::asio::post(context_, [&] { manager.stop(); });
  thread.join();
  EXPECT_GT(settled_messages(), 3U);
  EXPECT_THAT(socket_.messages().at(settled_ - 2), HasSubstr("STOPPING=1"));
}

TEST_F(ServiceManagerTest, StatusWithNewline_IsEscaped) {
  ServiceManager(context_).notify_status("drive /d\nREADY=1\xff");
  EXPECT_EQ(socket_.wait_for("STATUS="), "STATUS=drive /d\\x0aREADY=1\\xff");
}

TEST_F(ServiceManagerTest, NoServiceManager_NothingIsNotified) {
  ::unsetenv("NOTIFY_SOCKET");
  ::unsetenv("WATCHDOG_USEC");
  {
    ServiceManager manager(context_);
    manager.serve([] { return "well"; });
    context_.run();  // nothing keeps it running
    manager.reloading();
    manager.stop();
  }
  EXPECT_TRUE(socket_.messages().empty());
}

}  // namespace
}  // namespace spoor::daemon
