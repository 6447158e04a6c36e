// Whatever the bytes, loading ends with a configuration that is valid and comes back from print, or with an
// error that has a message.
#include <gtest/gtest.h>

#include "config/check.h"
#include "tests/config/support.h"
#include "tests/support/random.h"

namespace spoor::config {
namespace {

using support::Random;

std::string random_bytes(Random& random, std::size_t size_max) {
  return random.bytes(random.below(size_max + 1));
}

// A piece of JSON, so that many mutations still parse.
std::string random_token(Random& random) {
  static const std::vector<std::string> tokens = {"{",
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
  return random.pick(tokens);
}

std::string mutated(Random& random, std::string text) {
  for (std::size_t left = random.between(1, 4); left > 0 && !text.empty(); --left) {
    const std::size_t at = random.below(text.size());
    switch (random.below(5)) {
      case 0:
        text[at] = random.byte();
        break;
      case 1:
        text.erase(at, random.between(1, 8));
        break;
      case 2:
        text.insert(at, random_token(random));
        break;
      case 3:
        text.replace(at, random.between(1, 8), random_token(random));
        break;
      default:
        text.insert(at, text.substr(random.below(text.size()), random.below(40)));
        break;
    }
  }
  return text;
}

void check(std::string_view text, const std::vector<std::string>& overrides) {
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

TEST(RandomTest, RandomBytesAndMutatedFiles_LoadOrFailWithError) {
  SPOOR_RANDOM(random);
  for (int i = 0; i < 3'000; ++i) check(random_bytes(random, 200), {});
  for (int i = 0; i < 6'000; ++i)
    check(mutated(random, std::string(random.one_in(2) ? minimal : everything)), {});
}

TEST(RandomTest, RandomOverrides_LoadOrFailWithError) {
  SPOOR_RANDOM(random);
  const std::vector<std::string> keys = {"node.name",
                                         "drives",
                                         "listen",
                                         "tracker.fp_rate",
                                         "log.level",
                                         "limits.max_body",
                                         "tracker.save_interval",
                                         "peers",
                                         "x"};
  for (int i = 0; i < 3'000; ++i) {
    const std::string key = random.pick(keys);
    check(minimal,
          {random_bytes(random, 30), key + "=" + random_token(random), key + "=" + random_bytes(random, 20)});
    check(minimal, {key + "=" + random_token(random)});
  }
}

}  // namespace
}  // namespace spoor::config
