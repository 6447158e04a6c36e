#include "peer/membership/membership.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "peer/membership/dns_members.h"
#include "peer/membership/last_known_members_file.h"
#include "tests/fakes/manual_clock.h"
#include "tests/fakes/memory_file_system.h"

namespace spoor::peer {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Says what it was told to; of other names, that nobody is there.
class FakeResolver final : public Resolver {
 public:
  std::vector<DnsAnswer> resolve(std::span<const base::DnsSource> sources) override {
    std::vector<DnsAnswer> found;
    for (const base::DnsSource& source : sources) found.push_back(answers[source.to_string()]);
    ++calls;
    return found;
  }

  std::map<std::string, DnsAnswer> answers;
  int calls = 0;
};

DnsAnswer listing(const std::vector<std::string>& urls) {
  DnsAnswer answer;
  for (const std::string& url : urls) answer.endpoints.push_back(base::parse_endpoint(url).value());
  return answer;
}

struct Registered {
  std::vector<base::Endpoint> listed;
  std::vector<base::Endpoint> departed = {};
};

base::Result<Registered> registered(const std::vector<std::string>& urls,
                                    const std::vector<std::string>& departed = {}) {
  return Registered{listing(urls).endpoints, listing(departed).endpoints};
}

// A registry such as etcd.
struct FakeRegistry {
  std::string label;
  std::function<base::Result<Registered>()> list;
  std::chrono::milliseconds forget_after = std::chrono::hours(24);
  std::set<std::string> not_alive = {};
};

class RegistrySource final : public MemberSource {
 public:
  explicit RegistrySource(FakeRegistry registry) : registry_(std::move(registry)) {}

  std::vector<SourceListing> list(const LastScan& /*last*/) override {
    SourceListing listing{.source = registry_.label, .listed = {}};
    listing.forget_after = registry_.forget_after;
    listing.not_alive = registry_.not_alive;
    const auto found = registry_.list();
    if (found) {
      listing.listed = urls_of(found->listed, listing.problem);
      listing.departed = urls_of(found->departed, listing.problem);
    } else {
      listing.problem = found.error().message;
    }
    return {listing};
  }

 private:
  const FakeRegistry registry_;
};

struct Sources {
  base::Endpoint own;
  std::vector<base::Endpoint> static_endpoints = {};
  std::vector<base::DnsSource> dns = {};
  std::optional<FakeRegistry> registry = {};
  std::chrono::milliseconds forget_after = std::chrono::hours(24);
};

const DnsAnswer no_answer{{}, "no answer in time"};

class MembershipTest : public ::testing::Test {
 protected:
  MembershipTest() {
    files_.make_directory("/data");
    sources_.own = base::parse_endpoint("unix:/own.sock").value();
    sources_.dns = {base::parse_dns_source("x").value()};
  }

  // The membership of one scan.
  struct Scan {
    Scan(const Sources& sources, std::shared_ptr<Resolver> resolver, const Membership::Store& store)
        : dns(std::move(resolver),
              {.names = sources.dns, .is_tls = false, .forget_after = sources.forget_after}),
          registry(sources.registry ? std::make_unique<RegistrySource>(*sources.registry) : nullptr),
          membership({.own = sources.own,
                      .static_endpoints = sources.static_endpoints,
                      .sources = {&dns, registry.get()}},
                     store) {}

    DnsMembers dns;
    std::unique_ptr<RegistrySource> registry;
    Membership membership;
  };

  std::unique_ptr<Scan> scan(bool is_dry = false) {
    return std::make_unique<Scan>(sources_, resolver_owner_,
                                  Membership::Store{files_, "/data", clock_, is_dry});
  }

  MembershipView read(Scan& scan) { return scan.membership.read({cursors_, {}}); }

  // As a scan does that is stored.
  MembershipView find() {
    const auto one = scan();
    auto members = read(*one);
    const auto asked = ask(members);
    EXPECT_TRUE(one->membership.store_responses(asked, cursors_));
    for (const auto& [url, state] : asked) cursors_[url] = {};
    return members;
  }

  AddressStates ask(const MembershipView& members) const {
    AddressStates asked;
    for (const auto* list : {&members.endpoints, &members.departed}) {
      for (const std::string& url : urls(*list)) {
        const auto state = states_.find(url);
        asked[url] = state == states_.end() ? AddressState::answered : state->second;
      }
    }
    return asked;
  }

  static std::vector<std::string> urls(const std::vector<base::Endpoint>& endpoints) {
    std::vector<std::string> urls;
    for (const base::Endpoint& endpoint : endpoints) urls.push_back(endpoint.to_string());
    return urls;
  }

  fakes::MemoryFileSystem files_;
  fakes::ManualClock clock_;
  std::shared_ptr<FakeResolver> resolver_owner_ = std::make_shared<FakeResolver>();
  FakeResolver& resolver_ = *resolver_owner_;
  tracker::Cursors cursors_;
  Sources sources_;
  AddressStates states_;  // of those who do not answer
};

TEST_F(MembershipTest, AllSources_AreMergedWithoutDuplicates) {
  sources_.static_endpoints = {base::parse_endpoint("http://b:1").value(), sources_.own,
                               base::parse_endpoint("http://a:1").value()};
  sources_.dns.push_back(base::parse_dns_source("srv:_s._tcp.y").value());
  sources_.dns.push_back(sources_.dns.front());
  resolver_.answers["x:7420"] = listing({"http://a:1", "http://c:1"});
  resolver_.answers["srv:_s._tcp.y"] = listing({"http://c:1", "http://d:1"});
  sources_.registry = {"etcd", [] { return registered({"http://d:1", "http://e:1"}); }};
  const auto members = find();
  EXPECT_THAT(urls(members.endpoints), ElementsAre("unix:/own.sock", "http://b:1", "http://a:1", "http://c:1",
                                                   "http://d:1", "http://e:1"));
  EXPECT_THAT(members.named_urls, ElementsAre("http://a:1", "http://b:1", "unix:/own.sock"));
  EXPECT_THAT(members.departed, IsEmpty());
  EXPECT_THAT(members.unknown_sources, IsEmpty());
  EXPECT_EQ(resolver_.calls, 1) << "side by side";
}

TEST_F(MembershipTest, NoDnsSource_ResolvesNothingAndWritesNoFile) {
  sources_.dns.clear();
  EXPECT_THAT(urls(find().endpoints), ElementsAre("unix:/own.sock"));
  EXPECT_EQ(resolver_.calls, 0);
  EXPECT_THAT(files_.names_in("/data"), IsEmpty());
}

TEST_F(MembershipTest, MemberNoLongerListed_IsDepartedUntilEvicted) {
  resolver_.answers["x:7420"] = listing({"http://a:1", "http://b:1"});
  find();
  resolver_.answers["x:7420"] = listing({"http://a:1"});
  states_["http://b:1"] = AddressState::silent;
  clock_.advance(std::chrono::hours(1));
  for (int hour = 1; hour <= 24; ++hour) {
    const auto members = find();
    EXPECT_THAT(urls(members.endpoints), ElementsAre("unix:/own.sock", "http://a:1"));
    EXPECT_THAT(urls(members.departed), ElementsAre("http://b:1"));
    EXPECT_THAT(members.unknown_sources, IsEmpty());
    clock_.advance(std::chrono::hours(1));
  }
  EXPECT_THAT(find().departed, IsEmpty());
}

// As a pod does that is not ready, and goes on acknowledging marks.
TEST_F(MembershipTest, DepartedMemberResponds_IsNeverEvicted) {
  resolver_.answers["x:7420"] = listing({"http://a:1"});
  sources_.registry = {"etcd", [] { return registered({"http://b:1"}); }};
  find();
  resolver_.answers["x:7420"] = {};
  sources_.registry->list = [] { return registered({}); };
  for (int week = 0; week < 10; ++week) {
    clock_.advance(std::chrono::hours(24 * 7));
    EXPECT_THAT(urls(find().departed), ElementsAre("http://a:1", "http://b:1"));
  }
}

// Nobody is forgotten before he was asked, however long the last scan was ago.
TEST_F(MembershipTest, LongPauseBetweenScans_EvictsNoMember) {
  resolver_.answers["x:7420"] = listing({"http://a:1"});
  find();
  resolver_.answers["x:7420"] = {};
  states_["http://a:1"] = AddressState::silent;
  for (int round = 0; round < 4; ++round) {
    clock_.advance(std::chrono::hours(24 * 365));
    EXPECT_THAT(urls(find().departed), ElementsAre("http://a:1"));
  }
  EXPECT_THAT(find().departed, IsEmpty());
}

TEST_F(MembershipTest, AddressItsNodeLeft_IsNotAskedAgain) {
  resolver_.answers["x:7420"] = listing({"http://a:1"});
  find();
  resolver_.answers["x:7420"] = listing({"http://b:1"});
  states_["http://a:1"] = AddressState::left;
  EXPECT_THAT(urls(find().departed), ElementsAre("http://a:1"));
  EXPECT_THAT(find().departed, IsEmpty());
}

TEST_F(MembershipTest, ScanNotSettled_EvictsNoMember) {
  sources_.forget_after = std::chrono::milliseconds(0);
  resolver_.answers["x:7420"] = listing({"http://a:1"});
  find();
  resolver_.answers["x:7420"] = {};
  for (int round = 0; round < 3; ++round) {
    clock_.advance(std::chrono::hours(1000));
    EXPECT_THAT(urls(read(*scan()).departed), ElementsAre("http://a:1"));
  }
}

TEST_F(MembershipTest, DepartedInOneSourceListedInAnother_IsListed) {
  resolver_.answers["x:7420"] = listing({"http://a:1", "unix:/own.sock"});
  find();
  resolver_.answers["x:7420"] = {};
  sources_.static_endpoints = {base::parse_endpoint("http://a:1").value()};
  const auto members = find();
  EXPECT_THAT(urls(members.endpoints), ElementsAre("unix:/own.sock", "http://a:1"));
  EXPECT_THAT(members.departed, IsEmpty());
}

TEST_F(MembershipTest, SourceSilent_IsUnknownAndListsLastKnownMembers) {
  resolver_.answers["x:7420"] = listing({"http://a:1"});
  sources_.registry = {"etcd http://e", [] { return registered({"http://b:1"}); }};
  find();
  clock_.advance(std::chrono::hours(1000));
  resolver_.answers["x:7420"] = no_answer;
  sources_.registry->list = [] {
    return base::Result<Registered>(base::Error(std::make_error_code(std::errc::timed_out), "no lease"));
  };
  const auto members = find();
  EXPECT_THAT(urls(members.endpoints), ElementsAre("unix:/own.sock", "http://a:1", "http://b:1"));
  EXPECT_THAT(members.unknown_sources,
              ElementsAre("dns x:7420: no answer in time", "etcd http://e: no lease"));
}

TEST_F(MembershipTest, MemberLeftRegistry_IsDepartedForRegistryForgetAfter) {
  sources_.registry = {"etcd", [] { return registered({"http://b:1", "http://c:1"}); },
                       std::chrono::hours(4)};
  find();
  sources_.registry->list = [] { return registered({"http://c:1"}); };
  states_["http://b:1"] = AddressState::silent;
  for (int hour = 1; hour <= 4; ++hour) {
    clock_.advance(std::chrono::hours(1));
    const auto members = find();
    EXPECT_THAT(urls(members.endpoints), ElementsAre("unix:/own.sock", "http://c:1"));
    EXPECT_THAT(urls(members.departed), ElementsAre("http://b:1"));
  }
  EXPECT_THAT(find().departed, IsEmpty());
}

TEST_F(MembershipTest, RegistryReportsDeparted_IsDepartedAtOnce) {
  sources_.registry = {"etcd", [] { return registered({"http://b:1"}, {"http://a:1", "http://b:1"}); }};
  const auto members = find();
  EXPECT_THAT(urls(members.endpoints), ElementsAre("unix:/own.sock", "http://b:1"));
  EXPECT_THAT(urls(members.departed), ElementsAre("http://a:1"));
}

TEST_F(MembershipTest, InvalidAddress_IsAnErrorOfItsSource) {
  resolver_.answers["x:7420"].endpoints = {{"[a", 80, {}}, {"fine", 80, {}}, {"a b", 80, {}}};
  const std::vector<base::Endpoint> registry_listed{{"", 80, {}}};
  const std::vector<base::Endpoint> registry_departed{{"a\nb", 80, {}}, {"here", 0, {}}};
  sources_.registry = {
      "etcd", [&] { return base::Result<Registered>(Registered{registry_listed, registry_departed}); }};
  const auto members = find();
  EXPECT_THAT(urls(members.endpoints), ElementsAre("unix:/own.sock", "http://fine:80"));
  EXPECT_THAT(members.departed, IsEmpty());
  EXPECT_THAT(members.unknown_sources,
              ElementsAre(AllOf(StartsWith("dns x:7420: "), HasSubstr("http://[a:80")),
                          AllOf(StartsWith("etcd: "), HasSubstr("the host is missing"))));
}

TEST_F(MembershipTest, MemberNotAlive_IsRequestedAfterAllOthers) {
  resolver_.answers["x:7420"] = listing({"http://b:1", "http://c:1"});
  sources_.static_endpoints = {base::parse_endpoint("http://a:1").value()};
  sources_.registry = {"etcd", [] { return registered({"http://d:1"}); }};
  sources_.registry->not_alive = {"http://a:1", "http://b:1", "unix:/own.sock"};
  EXPECT_THAT(urls(find().endpoints),
              ElementsAre("unix:/own.sock", "http://c:1", "http://d:1", "http://a:1", "http://b:1"));
}

TEST_F(MembershipTest, NoStore_FailingSourceListsLastKnownMembersAndKeepsNoDeparted) {
  auto resolver = std::make_shared<FakeResolver>();
  DnsMembers dns(resolver, {.names = sources_.dns});
  Membership membership({.own = {}, .static_endpoints = {}, .sources = {&dns, nullptr}});
  const auto read = [&] { return membership.read({cursors_, "checkpoint"}); };
  resolver->answers["x:7420"] = listing({"http://a:1", "http://b:1"});
  EXPECT_THAT(urls(read().endpoints), ElementsAre("http://a:1", "http://b:1"));
  resolver->answers["x:7420"] = no_answer;
  EXPECT_THAT(urls(read().endpoints), ElementsAre("http://a:1", "http://b:1"));
  EXPECT_THAT(read().unknown_sources, ElementsAre("dns x:7420: no answer in time"));
  resolver->answers["x:7420"] = listing({"http://b:1"});
  EXPECT_THAT(urls(read().endpoints), ElementsAre("http://b:1"));
  EXPECT_THAT(read().departed, IsEmpty());
  EXPECT_EQ(read().checkpoint, "checkpoint") << "no source has one of its own";
}

TEST_F(MembershipTest, DnsTls_ListsHttpsUrlsWithTheirNames) {
  auto resolver = std::make_shared<FakeResolver>();
  base::Endpoint address{"10.0.0.1", 7420, {}};
  address.tls_name = "node1.example";
  resolver->answers["x:7420"].endpoints = {address};
  DnsMembers tls(resolver, {.names = sources_.dns, .is_tls = true});
  EXPECT_THAT(tls.list({cursors_, {}}).at(0).listed, ElementsAre("https://10.0.0.1:7420#node1.example"));
  DnsMembers plain(resolver, {.names = sources_.dns});
  EXPECT_THAT(plain.list({cursors_, {}}).at(0).listed, ElementsAre("http://10.0.0.1:7420"));
}

TEST_F(MembershipTest, SourceNeverResponded_IsUnknown) {
  resolver_.answers["x:7420"] = no_answer;
  const auto members = find();
  EXPECT_THAT(urls(members.endpoints), ElementsAre("unix:/own.sock"));
  EXPECT_THAT(members.unknown_sources, ElementsAre("dns x:7420: no answer in time"));
}

TEST_F(MembershipTest, CorruptMembersFile_IsUnknownForOneScan) {
  resolver_.answers["x:7420"] = listing({"http://a:1"});
  files_.put("/data/members.json", "{");
  const auto members = find();
  EXPECT_THAT(urls(members.endpoints), ElementsAre("unix:/own.sock", "http://a:1"));
  EXPECT_THAT(members.unknown_sources, ElementsAre(HasSubstr("/data/members.json is corrupt")));
  EXPECT_THAT(find().unknown_sources, IsEmpty());
}

TEST_F(MembershipTest, CorruptMembersFileWithoutDnsSource_IsUnknownForOneScan) {
  sources_.dns.clear();
  files_.put("/data/members.json", "{");
  EXPECT_THAT(find().unknown_sources, ElementsAre(HasSubstr("corrupt")));
  EXPECT_THAT(find().unknown_sources, IsEmpty());
}

TEST_F(MembershipTest, UnreadableMembersFile_IsNotOverwritten) {
  resolver_.answers["x:7420"] = listing({"http://a:1", "http://b:1"});
  find();
  resolver_.answers["x:7420"] = listing({"http://a:1"});
  files_.fail_call(1, EIO);
  const auto members = find();  // settles nothing
  EXPECT_THAT(members.unknown_sources, ElementsAre(HasSubstr("members.json")));
  EXPECT_THAT(members.departed, IsEmpty());
  EXPECT_THAT(urls(find().departed), ElementsAre("http://b:1"));
}

TEST_F(MembershipTest, UnwritableMembersFile_IsUnknown) {
  resolver_.answers["x:7420"] = listing({"http://a:1"});
  files_.fill("/data");
  const auto one = scan();
  const auto members = read(*one);
  EXPECT_THAT(urls(members.endpoints), ElementsAre("unix:/own.sock", "http://a:1"));
  EXPECT_THAT(members.unknown_sources, ElementsAre(HasSubstr("members.json")));
  EXPECT_FALSE(one->membership.store_responses(ask(members), cursors_));
  files_.heal("/data");
  EXPECT_TRUE(one->membership.store_responses(ask(members), cursors_));
  resolver_.answers["x:7420"] = {};
  EXPECT_THAT(urls(find().departed), ElementsAre("http://a:1"));
}

TEST_F(MembershipTest, MembersUnchanged_FileIsNotWrittenBeforeAsking) {
  resolver_.answers["x:7420"] = listing({"http://a:1"});
  find();
  clock_.advance(std::chrono::hours(1));
  files_.reset_calls();
  read(*scan());
  EXPECT_EQ(files_.calls(), 1U) << "it is read, and not written";
}

TEST_F(MembershipTest, DryRun_WritesNoMembersFile) {
  resolver_.answers["x:7420"] = listing({"http://a:1"});
  const auto one = scan(true);
  const auto members = read(*one);
  EXPECT_THAT(urls(members.endpoints), ElementsAre("unix:/own.sock", "http://a:1"));
  EXPECT_TRUE(one->membership.store_responses(ask(members), cursors_));
  EXPECT_THAT(files_.names_in("/data"), IsEmpty());
  files_.put("/data/members.json", "{");
  EXPECT_THAT(read(*scan(true)).unknown_sources, ElementsAre(HasSubstr("corrupt")));
  EXPECT_EQ(files_.content("/data/members.json"), "{");
}

}  // namespace
}  // namespace spoor::peer
