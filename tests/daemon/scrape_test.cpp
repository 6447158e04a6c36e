// Scrapes at the same time, while the disk under the scan database does not answer.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <latch>

#include "daemon/process/task.h"
#include "daemon/status/metrics.h"
#include "tests/fakes/manual_clock.h"
#include "tests/support/temp_directory.h"

namespace spoor::daemon {
namespace {

class ScrapeTest : public testing::Test {
 protected:
  void scrape_begins() {
    boost::asio::co_spawn(context_, metrics_.scrape([] { return std::string("spoor_of_the_node 1\n"); }),
                          [this](const std::exception_ptr& failure, HttpResponse response) {
                            rethrow(failure);
                            answers_.push_back(std::move(response));
                          });
  }

  const support::TempDirectory directory_;
  fakes::ManualClock clock_;
  boost::asio::io_context context_;
  boost::asio::thread_pool pool_{1};
  HttpServer server_{context_, {}};
  ScanWatch scans_{context_, pool_, directory_ / "scan.db", std::chrono::hours(1)};
  Metrics metrics_{server_, scans_, clock_};
  std::vector<HttpResponse> answers_;  // in the order in which they came
};

TEST_F(ScrapeTest, FifthConcurrentScrape_ReturnsOverloaded) {
  std::latch disk_answers(1);
  boost::asio::post(pool_, [&] { disk_answers.wait(); });
  for (int i = 0; i < 5; ++i) scrape_begins();
  while (context_.poll_one() > 0) {
  }
  EXPECT_EQ(answers_.size(), 1U);
  disk_answers.count_down();
  context_.restart();
  context_.run();
  ASSERT_EQ(answers_.size(), 5U);
  EXPECT_EQ(answers_[0].status, 503U);
  EXPECT_EQ(answers_[0].problem, "overloaded");
  for (std::size_t i = 1; i < 5; ++i) EXPECT_EQ(answers_[i].status, 200U);
  EXPECT_NE(answers_[4].body.find("spoor_of_the_node 1\n"), std::string::npos);
  scrape_begins();
  context_.restart();
  context_.run();
  EXPECT_EQ(answers_.back().status, 200U) << "there is room again";
}

}  // namespace
}  // namespace spoor::daemon
