// Whatever the bytes, loading ends with a configuration that is valid and comes back from print, or
// with an error that says something.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "config/print.h"
#include "config/validate.h"
#include "tests/config/support.h"

namespace spoor::config {
namespace {

class RandomTest : public ::testing::Test {
 protected:
  RandomTest() {
    if (const char* given = std::getenv("SPOOR_TEST_SEED")) seed_ = std::strtoull(given, nullptr, 10);
    random_.seed(seed_);
    std::cout << "SPOOR_TEST_SEED=" << seed_ << '\n';
  }

  std::size_t below(std::size_t bound) { return random_() % bound; }

  std::string random_bytes(std::size_t size_max) {
    std::string bytes(below(size_max + 1), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    return bytes;
  }

  // A piece of JSON, so that many mutations still parse.
  std::string random_token() {
    static constexpr std::string_view tokens[] = {"{",
                                                  "}",
                                                  "[",
                                                  "]",
                                                  ",",
                                                  ":",
                                                  "\"",
                                                  "null",
                                                  "true",
                                                  "-1",
                                                  "0",
                                                  "1e400",
                                                  "18446744073709551616",
                                                  "0.5",
                                                  "\"\"",
                                                  "\"/a\"",
                                                  "\"..\"",
                                                  "\"5m\"",
                                                  "\"99999999999d\"",
                                                  "\"\\u0000\"",
                                                  "\"\\ud800\"",
                                                  "//",
                                                  "/*",
                                                  "\n",
                                                  "\"items\":1",
                                                  "\"unix\":\"/s\"",
                                                  "{\"address\":\"::1\"}",
                                                  "[[[[[[[[",
                                                  "\xff"};
    return std::string(tokens[below(std::size(tokens))]);
  }

  std::string mutated(std::string text) {
    for (std::size_t left = 1 + below(4); left > 0 && !text.empty(); --left) {
      const std::size_t at = below(text.size());
      switch (below(5)) {
        case 0:
          text[at] = static_cast<char>(random_());
          break;
        case 1:
          text.erase(at, 1 + below(8));
          break;
        case 2:
          text.insert(at, random_token());
          break;
        case 3:
          text.replace(at, 1 + below(8), random_token());
          break;
        default:
          text.insert(at, text.substr(below(text.size()), below(40)));
          break;
      }
    }
    return text;
  }

  static void check(const std::string& text, const std::vector<std::string>& overrides) {
    const auto loaded = load_text(text, "random", overrides);
    if (!loaded) {
      EXPECT_EQ(loaded.error().code, std::errc::invalid_argument);
      EXPECT_FALSE(loaded.error().message.empty());
      return;
    }
    EXPECT_TRUE(validate(*loaded).empty()) << text;
    Config again = load_text(to_json_text(*loaded), "printed", {}).value();
    again.listen_is_default = loaded->listen_is_default;
    EXPECT_EQ(again, *loaded) << text;
  }

 private:
  std::uint64_t seed_ = std::random_device{}();
  std::mt19937_64 random_;
};

TEST_F(RandomTest, RandomBytes_LoadOrFailWithError) {
  for (int i = 0; i < 3'000; ++i) check(random_bytes(200), {});
}

TEST_F(RandomTest, MutatedFiles_LoadOrFailWithError) {
  for (int i = 0; i < 6'000; ++i) check(mutated(std::string(below(2) == 0 ? minimal : full)), {});
}

TEST_F(RandomTest, RandomOverrides_LoadOrFailWithError) {
  for (int i = 0; i < 3'000; ++i) {
    static constexpr std::string_view keys[] = {"node.name",
                                                "drives",
                                                "listen",
                                                "tracker.fp_rate",
                                                "log.level",
                                                "limits.max_body",
                                                "tracker.save_interval",
                                                "peers",
                                                "x"};
    const std::string key(keys[below(std::size(keys))]);
    check(std::string(minimal), {random_bytes(30), key + "=" + random_token(), key + "=" + random_bytes(20)});
    check(std::string(minimal), {key + "=" + random_token()});
  }
}

}  // namespace
}  // namespace spoor::config
