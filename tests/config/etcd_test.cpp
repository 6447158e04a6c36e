#include <fmt/format.h>
#include <gmock/gmock.h>

#include "config/derived.h"
#include "tests/config/support.h"

namespace spoor::config {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A node that others reach at `listen`, with this for peers.etcd.
base::Result<Config> load_etcd(std::string_view etcd, std::string_view address = "10.0.0.1") {
  return load_text(fmt::format(R"({{"node":{{"name":"x"}},"drives":["/srv/data"],
      "listen":[{{"unix":"/run/s.sock"}},{{"address":"127.0.0.1"}},{{"address":"{}","insecure":true}}],
      "peers":{{"etcd":{}}}}})",
                               address, etcd),
                   "spoor.json", {});
}

constexpr std::string_view least = R"({"endpoints":["http://e:2379"]})";

TEST(EtcdConfigTest, EndpointsOnly_OtherSettingsHaveDefaults) {
  const auto config = load_etcd(least);
  ASSERT_TRUE(config) << config.error().message;
  Etcd expected;
  expected.endpoints = {{"e", 2379, {}}};
  EXPECT_EQ(config->peers.etcd, expected);
  EXPECT_EQ(advertised_url(*config), "http://10.0.0.1:7420");
  EXPECT_EQ(load_etcd("null")->peers.etcd, std::nullopt);
  const auto tls = load_etcd(R"({"endpoints":["https://e"],"tls":{"ca":"/ca"}})");
  EXPECT_EQ(tls->peers.etcd->endpoints[0].to_string(), "https://e:2379") << "the port of etcd";
}

TEST(EtcdConfigTest, Override_ReplacesOrUnsetsEtcd) {
  const std::vector<std::string> set{R"(peers.etcd={"endpoints":["http://e:1"],"url":"http://me:1"})"};
  EXPECT_EQ(advertised_url(*load_minimal(set)), "http://me:1");
  const std::vector<std::string> unset{set[0], "peers.etcd=null"};
  EXPECT_FALSE(load_minimal(unset)->peers.etcd.has_value());
}

TEST(EtcdConfigTest, PlainUrlOfAListenerThatExpectsTls_IsRefused) {
  const auto load_url = [](const std::string& url, const std::string& more_listeners = "") {
    return load_text(
        fmt::format(R"({{"node":{{"name":"x"}},"drives":["/srv/data"],"listen":[{{"unix":"/run/s.sock"}},
                    {{"address":"10.0.0.1","tls":{{"certificate":"/c","key":"/k"}},"insecure":true}}{}],
                    "peers":{{"etcd":{{"endpoints":["http://e:1"],"url":"{}"}}}}}})",
                    more_listeners, url),
        "spoor.json", {});
  };
  for (const char* url : {"http://me:7420", "http://me", "http://[::1]"}) {
    EXPECT_THAT(error_of(load_url(url)), HasSubstr("the listener on port 7420 expects TLS")) << url;
  }
  for (const char* url : {"https://me:7420", "https://me", "http://me:80", "unix:/run/s.sock"}) {
    EXPECT_TRUE(load_url(url)) << url << ": " << error_of(load_url(url));
  }
  EXPECT_TRUE(load_url("http://me:7420", R"(,{"address":"127.0.0.1"})")) << "one of them is plain";
}

// Wherever a URL is, and whatever else is wrong with it.
TEST(EtcdConfigTest, UrlWithAPassword_ErrorDoesNotQuoteIt) {
  const std::string far(70, 'x');  // the end of the password is beyond what is quoted
  for (const std::string& url : {std::string("http://root:hush@e:2379"), std::string("root:hush@e:2379"),
                                 std::string("https://root:hush@e/path"), "http://root:hush" + far + "@e",
                                 std::string("http://root:hush/@e")}) {
    const std::string quoted = '"' + url + '"';
    for (const std::string& peers :
         {R"({"etcd":{"endpoints":[)" + quoted + "]}}", R"({"etcd":{"endpoints":)" + quoted + "}}",
          R"({"etcd":{"endpoints":["http://e"],"url":)" + quoted + "}}", R"({"etcd":)" + quoted + "}",
          R"({"static":[)" + quoted + "]}", R"({"static":)" + quoted + "}",
          R"({"static":[[)" + quoted + "]]}", R"({"dns":[)" + quoted + "]}", "{" + quoted + ":1}"}) {
      const std::string error =
          error_of_text(R"({"node":{"name":"x"},"drives":["/srv/data"],"peers":)" + peers + "}");
      EXPECT_THAT(error, HasSubstr("peers")) << peers;
      EXPECT_THAT(error, Not(HasSubstr("hush"))) << peers;
    }
    EXPECT_THAT(error_of(load_minimal({"peers.static=" + url})), Not(HasSubstr("hush"))) << url;
  }
}

TEST(EtcdConfigTest, InvalidValue_ErrorNamesKey) {
  const std::pair<std::string_view, const char*> wrong[] = {
      {R"("http://e:2379")", "peers.etcd: \"http://e:2379\" is wrong: expected null or"},
      {"{}", "peers.etcd.endpoints: expected 1 to 64"},
      {R"({"endpoints":["e:2379"]})", "peers.etcd.endpoints[0]: 'e:2379' is wrong"},
      {R"({"endpoints":["https://e"],"tls":{"certificate":"/c"}})",
       "peers.etcd.tls: a 'certificate' and its"},
      {R"({"endpoints":["https://e"],"tls":{"ca":"ca"}})", "peers.etcd.tls.ca: expected an absolute path"},
      {R"({"endpoints":"http://e:2379"})",
       "peers.etcd.endpoints: \"http://e:2379\" is wrong: expected a list"},
  };
  for (const auto& [etcd, what] : wrong) EXPECT_THAT(error_of(load_etcd(etcd)), HasSubstr(what)) << etcd;
  const std::pair<std::string_view, const char*> wrong_member[] = {
      {R"("tls":{"ca":"/ca"})", "with 'tls' each endpoint has the form https"},
      {R"("user":"u")", "peers.etcd: a 'user' and its 'password_file'"},
      {R"("user":"u","password_file":"p")", "peers.etcd.password_file: expected"},
      {R"("endpoint":1)", "unknown key 'peers.etcd.endpoint': did you mean 'peers.etcd.endpoints'?"},
      {R"("prefix":"/a")", "peers.etcd.prefix: "},
      {R"("prefix":"a/")", "peers.etcd.prefix: "},
      {R"("prefix":"")", "peers.etcd.prefix: "},
      {R"("prefix":"a b")", "peers.etcd.prefix: "},
      {R"("ttl":"1s")", "peers.etcd.ttl: \"1s\" is out of range"},
      {R"("ttl":"2500ms")", "peers.etcd.ttl: \"2500ms\" is wrong: expected whole"},
      {R"("ttl":"11m")", "peers.etcd.ttl: "},
      {R"("ttl":30)", "peers.etcd.ttl: 30 is wrong: expected a duration"},
      {R"("forget_after":"59s")", "peers.etcd.forget_after: \"59s\" is out of"},
      {R"("ttl":"1m","forget_after":"179s")", "peers.etcd.forget_after: \"179s\" is too"},
      {R"("url":"me")", "peers.etcd.url: 'me' is wrong"},
  };
  for (const auto& [member, what] : wrong_member) {
    const std::string etcd = fmt::format(R"({{"endpoints":["http://e:1"],{}}})", member);
    EXPECT_THAT(error_of(load_etcd(etcd)), HasSubstr(what)) << etcd;
  }
}

TEST(EtcdConfigTest, NoReachableListener_UrlIsRequired) {
  for (const std::string_view address : {"0.0.0.0", "::", "::ffff:0.0.0.0", "127.0.0.2", "::1"}) {
    EXPECT_THAT(error_of(load_etcd(least, address)), HasSubstr("peers.etcd.url: is required")) << address;
  }
  EXPECT_EQ(advertised_url(*load_etcd(least, "fd00::1")), "http://[fd00::1]:7420");
  EXPECT_THAT(error_of(load_minimal({R"(peers.etcd={"endpoints":["http://e:1"]})"})),
              HasSubstr("peers.etcd.url: is required"));
  EXPECT_THAT(error_of(load_minimal({R"(peers.etcd={"endpoints":["http://e:1"]})",
                                     R"(listen=[{"address":"10.0.0.1","port":0,"insecure":true}])"})),
              HasSubstr("peers.etcd.url: is required"));
}

}  // namespace
}  // namespace spoor::config
