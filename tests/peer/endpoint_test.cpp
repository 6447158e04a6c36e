#include "peer/endpoint.h"

#include <gtest/gtest.h>

namespace spoor::peer {
namespace {

TEST(EndpointTest, UrlsGoThereAndBack) {
  const std::pair<const char*, const char*> cases[] = {
      {"http://10.0.0.2:7421", "http://10.0.0.2:7421"},
      {"http://node2", "http://node2:7420"},
      {"http://node2/", "http://node2:7420"},
      {"http://[::1]:80", "http://[::1]:80"},
      {"http://[fe80::1]", "http://[fe80::1]:7420"},
      {"unix:/run/spoor/spoor.sock", "unix:/run/spoor/spoor.sock"},
  };
  for (const auto& [url, expected] : cases) {
    const auto endpoint = parse_endpoint(url);
    ASSERT_TRUE(endpoint) << url;
    EXPECT_EQ(endpoint->to_string(), expected);
  }
}

TEST(EndpointTest, WhatIsNoUrlOfADaemonIsRefused) {
  for (const char* url :
       {"", "node2:7420", "https://node2", "http://", "http://:80", "http://a:0", "http://a:65536",
        "http://a:8x", "http://a/b", "http://u@a", "http://[::1", "unix:relative", "http://a b"}) {
    EXPECT_FALSE(parse_endpoint(url)) << url;
  }
}

}  // namespace
}  // namespace spoor::peer
