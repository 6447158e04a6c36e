#include "base/endpoint.h"

#include <gtest/gtest.h>

#include <vector>

namespace spoor::base {
namespace {

TEST(EndpointTest, Url_ParseAndFormat_RoundTrips) {
  const std::pair<const char*, const char*> cases[] = {
      {"http://10.0.0.2:7421", "http://10.0.0.2:7421"},
      {"http://node2", "http://node2:7420"},
      {"http://node2/", "http://node2:7420"},
      {"http://[::1]:80", "http://[::1]:80"},
      {"http://[fe80::1]", "http://[fe80::1]:7420"},
      {"http://[::ffff:10.0.0.1]:1", "http://[::ffff:10.0.0.1]:1"},
      {"http://Node_2.example-1.net", "http://Node_2.example-1.net:7420"},
      {"http://node2:65535", "http://node2:65535"},
      {"https://node2", "https://node2:7420"},
      {"https://[::1]:80", "https://[::1]:80"},
      {"https://10.0.0.1#node1.example", "https://10.0.0.1:7420#node1.example"},
      {"https://[::1]:80/#node1", "https://[::1]:80#node1"},
      {"unix:/run/spoor/spoor.sock", "unix:/run/spoor/spoor.sock"},
  };
  for (const auto& [url, expected] : cases) {
    const auto endpoint = parse_endpoint(url);
    ASSERT_TRUE(endpoint) << url;
    EXPECT_EQ(endpoint->to_string(), expected);
    EXPECT_EQ(parse_endpoint(expected).value(), *endpoint);
  }
}

TEST(EndpointTest, HostField_HasBracketsAroundAnIpv6Address) {
  EXPECT_EQ(parse_endpoint("http://[::1]:7420").value().host_field(), "[::1]");
  EXPECT_EQ(parse_endpoint("https://node1.example").value().host_field(), "node1.example");
  EXPECT_EQ(parse_endpoint("unix:/run/spoor.sock").value().host_field(), "localhost");
}

TEST(EndpointTest, InvalidDaemonUrl_IsRefused) {
  const std::vector<std::vector<const char*>> all = {
      {"", "a", "node2:7420", "ftp://node2", "HTTP://a", "unix:", "unix:relative"},
      {"http://a:", "http://a:0", "http://a:65536", "http://a:8x", "http://[::1]x"},
      {"http://", "http://:80", "https://", "http://a,b", "http://a%41", "http://a\n", "http://a\x7f"},
      {"http://b\xc3\xbc", "http://a]:80", "http://a[b"},
      {"http://a/b", "http://a:1/x", "http://u@a", "http://a b", "http://a#name"},
      {"https://a#", "https://a#b c", "https://a#b#c", "https://a#b/"},
      {"http://[::1", "http://[[a]:80", "http://[a]:80", "http://[10.0.0.1]:80", "http://[]:80"},
      {"http://[fe80::1%eth0]:80", "http://[fe80::1%25eth0]", "http://[::1]]:80", "http://[1:2:3]"},
  };
  for (const auto& urls : all) {
    for (const char* url : urls) EXPECT_FALSE(parse_endpoint(url)) << url;
  }
  for (const std::string_view url :
       {std::string_view("http://a\0b:80", 13), std::string_view("http://[::1\0]:80", 17)}) {
    EXPECT_FALSE(parse_endpoint(url)) << "a NUL in " << url;
  }
}

}  // namespace
}  // namespace spoor::base
