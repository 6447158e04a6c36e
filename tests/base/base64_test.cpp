#include "base/base64.h"

#include <gtest/gtest.h>

#include "tests/support/random.h"

namespace spoor::base {
namespace {

// RFC 4648, section 10.
TEST(Base64Test, Rfc4648Vectors_EncodeAndDecode) {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"},
                                                         {"\xfb\xff\xbf", "+/+/"}};
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes) << text;
  }
}

TEST(Base64Test, RandomBytes_RoundTrip) {
  SPOOR_RANDOM(random);
  for (int i = 0; i < 2000; ++i) {
    const std::string bytes = random.bytes(random.below(50));
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
  }
}

TEST(Base64Test, MalformedText_IsRefused) {
  for (const std::string text : {"Z", "Zg", "Zg=", "Zg==Zg==", "====", "=", "Z===", "Zm9v\n", "Zm9v ", "Zm-_",
                                 "Zh==", "Zm9=", "Zg=a"}) {
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
  }
  EXPECT_EQ(from_base64(std::string("Zm9\0", 4)), std::nullopt);
}

}  // namespace
}  // namespace spoor::base
