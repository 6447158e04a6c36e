// `spoor mark` at a daemon that stops to acknowledge.
#include <gmock/gmock.h>

#include <atomic>
#include <nlohmann/json.hpp>

#include "tests/support/canned_server.h"
#include "tests/support/process.h"

namespace spoor::cli {
namespace {

using nlohmann::json;
using support::CannedServer;

constexpr std::size_t batch_bytes = std::size_t{256} << 10U;

// Marks that are sent in several batches.
struct Marks {
  const char* name;
  std::vector<std::string> arguments;
  std::string input;
  std::size_t first_batch;
};

const std::string path(200, 'a');

std::vector<Marks> several_batches() {
  return {{"Kinds", {"--from", "rsync"}, ">f+++++++++ a/file\ncd+++++++++ b/\n", 1},
          {"Bytes", std::vector<std::string>(2'000, path), "", batch_bytes / (path.size() + 1)}};
}

class LaterBatchTest : public testing::TestWithParam<std::tuple<Marks, bool>> {};

TEST_P(LaterBatchTest, NotAcknowledged_IsAFailure) {
  const auto& [marks, hangs] = GetParam();
  std::atomic<int> requests = 0;
  const CannedServer daemon([&](const std::string&, const CannedServer::Connection& connection) {
    if (requests++ == 0) {
      connection.send(
          CannedServer::response(json{{"marked", marks.first_batch}, {"ignored", 0}, {"cycle", 1}}.dump()));
    } else if (hangs) {
      connection.wait_until_closed();
    }
  });
  std::vector<std::string> command{SPOOR, "--url", daemon.url(), "mark", "--timeout", "1", "--json"};
  command.insert(command.end(), marks.arguments.begin(), marks.arguments.end());
  const auto marked = support::run_command(command, marks.input);
  EXPECT_EQ(marked.code, 1);
  EXPECT_THAT(marked.err, testing::HasSubstr("not marked: "));
  // None, on a machine so busy that the time was over before the first acknowledgement.
  EXPECT_THAT(json::parse(marked.out)["marked"], testing::AnyOf(0U, marks.first_batch));
}

INSTANTIATE_TEST_SUITE_P(Batches, LaterBatchTest,
                         testing::Combine(testing::ValuesIn(several_batches()), testing::Bool()),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).name) +
                                  (std::get<1>(test.param) ? "_hangs" : "_closes");
                         });

}  // namespace
}  // namespace spoor::cli
