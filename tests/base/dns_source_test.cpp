#include "base/dns_source.h"

#include <gtest/gtest.h>

#include <string>

namespace spoor::base {
namespace {

TEST(DnsSourceTest, Name_HasGivenOrDefaultPort) {
  EXPECT_EQ(parse_dns_source("spoor.example").value(), (DnsSource{"spoor.example", 7420, false}));
  EXPECT_EQ(parse_dns_source("spoor.example:1").value(), (DnsSource{"spoor.example", 1, false}));
  EXPECT_EQ(parse_dns_source("spoor.example").value().to_string(), "spoor.example:7420");
}

TEST(DnsSourceTest, SrvName_ParsesOnlyWithoutPort) {
  const auto source = parse_dns_source("srv:_spoor._tcp.example");
  EXPECT_EQ(source.value(), (DnsSource{"_spoor._tcp.example", 0, true}));
  EXPECT_EQ(source.value().to_string(), "srv:_spoor._tcp.example");
  EXPECT_FALSE(parse_dns_source("srv:_spoor._tcp.example:7420"));
}

TEST(DnsSourceTest, InvalidName_IsRefused) {
  for (const std::string bad :
       {"", ":7420", "srv:", "a:", "a:0", "a:65536", "a:1x", "10.0.0.1", "10.0.0.1:7420", "::1"}) {
    const auto source = parse_dns_source(bad);
    ASSERT_FALSE(source) << bad;
    EXPECT_EQ(source.error().code, std::errc::invalid_argument);
  }
}

TEST(DnsServerTest, Address_HasGivenOrDefaultPort) {
  EXPECT_EQ(parse_dns_server("10.0.0.1").value(), (DnsServer{"10.0.0.1", 53}));
  EXPECT_EQ(parse_dns_server("10.0.0.1:8600").value(), (DnsServer{"10.0.0.1", 8600}));
  EXPECT_EQ(parse_dns_server("fd00::1").value(), (DnsServer{"fd00::1", 53}));
  EXPECT_EQ(parse_dns_server("[fd00::1]").value(), (DnsServer{"fd00::1", 53}));
  EXPECT_EQ(parse_dns_server("[fd00::1]:8600").value(), (DnsServer{"fd00::1", 8600}));
}

TEST(DnsServerTest, InvalidAddress_IsRefused) {
  for (const std::string bad : {"", "dns.example", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:x", "[fd00::1",
                                "[fd00::1]8600", "[]", ":53"}) {
    EXPECT_FALSE(parse_dns_server(bad)) << bad;
  }
}

}  // namespace
}  // namespace spoor::base
