#include "cli/child_calls.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <stdexcept>

namespace spoor::cli {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

TEST(ChildCallsTest, Results_AreInTheOrderOfTheCalls) {
  const std::string large(1'000'000, 'x');
  EXPECT_THAT(
      call_in_children({[] { return "first"; }, [&] { return large; }, [] { return ""; }}, seconds(60)),
      ElementsAre("first", large, ""));
}

TEST(ChildCallsTest, CallThatHangs_HasNoResult_AndHoldsUpNoOther) {
  const auto hang = []() -> std::string {
    for (;;) ::pause();
  };
  EXPECT_THAT(call_in_children({hang, [] { return "other"; }}, seconds(5)),
              ElementsAre(std::nullopt, "other"));
}

TEST(ChildCallsTest, CallThatFails_HasNoResult) {
  const auto fail = []() -> std::string { throw std::runtime_error("broken"); };
  EXPECT_THAT(call_in_children({fail, [] { return "other"; }}, seconds(60)),
              ElementsAre(std::nullopt, "other"));
}

TEST(ChildCallsTest, Child_HoldsNoOutputOpen) {
  const auto output = [] {
    std::string names(100, '\0');
    names.resize(static_cast<std::size_t>(::readlink("/proc/self/fd/1", names.data(), names.size())));
    return names;
  };
  EXPECT_THAT(call_in_children({output}, seconds(60)), ElementsAre("/dev/null"));
}

}  // namespace
}  // namespace spoor::cli
