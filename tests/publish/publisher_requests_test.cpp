// A publisher whose sink takes several requests for a batch.
#include <gmock/gmock.h>

#include <filesystem>
#include <optional>

#include "tests/publish/publisher_fixture.h"

namespace spoor::publish {
namespace {

// A sink that takes a request for each event, as many webhooks do.
class RequestsPublisherTest : public PublisherTest {
 protected:
  RequestsPublisherTest() {
    make_many();
    scan();
    sink_.request_max = 1;
  }

  void expect_the_rest_follows(std::size_t repetitions) {
    stops_ = false;
    sink_.fails_one_in = 0;
    sink_.on_publish = [] {};
    ASSERT_TRUE(publish(100));
    expect_equal_copy();
    EXPECT_LE(sink_.stored.size(), 1U + 100U + 1U + repetitions);
  }
};

TEST_F(RequestsPublisherTest, FailedRequest_AloneIsRepeated) {
  sink_.on_publish = [&] { sink_.fails_one_in = sink_.stored.size() > 30 ? 1 : 0; };
  ASSERT_FALSE(publish(100));
  EXPECT_GT(figures_.events, 30U);
  expect_the_rest_follows(1);
}

TEST_F(RequestsPublisherTest, Stop_EndsAfterTheRequest) {
  sink_.on_publish = [&] { stops_ = sink_.stored.size() == 30; };
  ASSERT_TRUE(publish(60));
  EXPECT_EQ(sink_.stored.size(), 31U);
  expect_the_rest_follows(0);
}

TEST_F(RequestsPublisherTest, LongRead_EndsAfterTheRequest) {
  std::optional<std::string> passed;
  sink_.on_publish = [&] {
    clock.advance(std::chrono::seconds(1));
    if (sink_.stored.size() != 20) return;
    passed =
        scanner::Consumers::open(temp.path())->find(Publisher::consumer_of("bus")).value()->progress->after;
  };
  ASSERT_TRUE(publish(100, std::chrono::seconds(7)));
  EXPECT_THAT(passed, testing::Optional(testing::Ne("")));
  expect_the_rest_follows(0);
}

class CutPublisherTest : public PublisherTest, public testing::WithParamInterface<std::vector<std::string>> {
 protected:
  CutPublisherTest() : PublisherTest(GetParam()) {
    for (const char* path : {"a/f", "b/x/f", "b/y/z/f", "c/q/f", "e/1", "e/s/2", "m.d/f", "m/f", "top"})
      write(path);
    scan();
  }

  // On the last drive, so that of two, one keeps what the other loses.
  void write(const std::string& path, std::size_t bytes = 10) {
    scanner::write_file(on_drive(path, GetParam().size() - 1), bytes);
  }
  void remove_from_last(const std::string& path) {
    std::filesystem::remove_all(on_drive(path, GetParam().size() - 1));
  }

  // The read ends behind each request, of any size, and goes on: as if it had not ended.
  void expect_same_events_if_cut_anywhere() {
    const auto cursor = temp / "consumers.db";
    std::filesystem::copy_file(cursor, temp / "before");
    events();
    ASSERT_TRUE(publish(100));
    const auto whole = events();
    ASSERT_GT(whole.size(), 9U);
    for (std::size_t cut = 1; cut <= 3 * whole.size(); ++cut) {
      std::filesystem::copy_file(temp / "before", cursor, std::filesystem::copy_options::overwrite_existing);
      sink_.request_max = 1 + cut % 3;
      sink_.on_publish = [&] { stops_ = sink_.stored.size() + sink_.request_max > cut / 3; };
      ASSERT_TRUE(publish(100));
      stops_ = false;
      sink_.on_publish = [] {};
      ASSERT_TRUE(publish(100));
      EXPECT_EQ(events(), whole) << cut;
    }
  }
};

TEST_P(CutPublisherTest, Changes_GoOnBehindAnyRequest) {
  ASSERT_TRUE(publish());
  for (const char* path : {"b", "c", "e/s", "m/f"}) remove_from_last(path);
  for (const char* path : {"a-/f", "a/g", "b", "c/v", "c/w/f", "e/3", "e/s", "m/f/g", "zoo"}) write(path);
  write("e/1", 20);
  write("top", 20);
  make_file("e/first");
  for (const char* path : {"", "a", "a-", "b", "c", "c/w", "e", "m"}) mark(path, tracker::MarkKind::tree);
  scan();
  expect_same_events_if_cut_anywhere();
}

TEST_P(CutPublisherTest, EverythingAfterAReset_GoesOnBehindAnyRequest) {
  sink_.on_publish = [&] { stops_ = true; };
  ASSERT_TRUE(publish(100));
  stops_ = false;
  sink_.on_publish = [] {};
  expect_same_events_if_cut_anywhere();
}

INSTANTIATE_TEST_SUITE_P(Drives, CutPublisherTest,
                         testing::Values(std::vector<std::string>{"one"},
                                         std::vector<std::string>{"one", "two"}),
                         [](const auto& test) { return test.param.back(); });

}  // namespace
}  // namespace spoor::publish
