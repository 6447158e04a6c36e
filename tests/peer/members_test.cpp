#include "peer/members.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <map>
#include <string>
#include <vector>

#include "peer/member_roll_file.h"
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
  std::vector<DnsAnswer> resolve(std::span<const DnsSource> sources) override {
    std::vector<DnsAnswer> found;
    for (const DnsSource& source : sources) found.push_back(answers[source.to_string()]);
    ++calls;
    return found;
  }

  std::map<std::string, DnsAnswer> answers;
  int calls = 0;
};

DnsAnswer listing(const std::vector<std::string>& urls) {
  DnsAnswer answer;
  for (const std::string& url : urls) answer.endpoints.push_back(parse_endpoint(url).value());
  return answer;
}

base::Result<RegistryAnswer> registered(const std::vector<std::string>& urls,
                                        const std::vector<std::string>& lingering = {}) {
  return RegistryAnswer{listing(urls).endpoints, listing(lingering).endpoints};
}

const DnsAnswer no_answer{{}, "no answer in time"};

class MembersTest : public ::testing::Test {
 protected:
  MembersTest() {
    files_.make_directory("/data");
    sources_.own = parse_endpoint("unix:/own.sock").value();
    sources_.dns = {parse_dns_source("x").value()};
  }

  // As a scan does that is stored.
  Members find() {
    auto members = find_members(sources_, resolver_, store());
    const auto asked = ask(members);
    EXPECT_TRUE(settle_members(members, asked, store()));
    for (const auto& [url, state] : asked) cursors_[url] = {};
    return members;
  }

  AddressStates ask(const Members& members) const {
    AddressStates asked;
    for (const auto* list : {&members.endpoints, &members.lingering}) {
      for (const std::string& url : urls(*list)) {
        const auto state = states_.find(url);
        asked[url] = state == states_.end() ? AddressState::answered : state->second;
      }
    }
    return asked;
  }

  RollStore store() { return {files_, "/data", clock_, cursors_}; }

  static std::vector<std::string> urls(const std::vector<Endpoint>& endpoints) {
    std::vector<std::string> urls;
    for (const Endpoint& endpoint : endpoints) urls.push_back(endpoint.to_string());
    return urls;
  }

  fakes::MemoryFileSystem files_;
  fakes::ManualClock clock_;
  FakeResolver resolver_;
  tracker::Cursors cursors_;
  MemberSources sources_;
  AddressStates states_;  // of those who do not answer
};

TEST_F(MembersTest, AllSourcesAreJoinedAndNobodyIsListedTwice) {
  sources_.static_endpoints = {parse_endpoint("http://b:1").value(), sources_.own,
                               parse_endpoint("http://a:1").value()};
  sources_.dns.push_back(parse_dns_source("srv:_s._tcp.y").value());
  sources_.dns.push_back(sources_.dns.front());
  resolver_.answers["x:7420"] = listing({"http://a:1", "http://c:1"});
  resolver_.answers["srv:_s._tcp.y"] = listing({"http://c:1", "http://d:1"});
  sources_.registry = {"etcd", [] { return registered({"http://d:1", "http://e:1"}); }};
  const auto members = find();
  EXPECT_THAT(urls(members.endpoints), ElementsAre("unix:/own.sock", "http://b:1", "http://a:1", "http://c:1",
                                                   "http://d:1", "http://e:1"));
  EXPECT_THAT(members.named_urls, ElementsAre("http://a:1", "http://b:1", "unix:/own.sock"));
  EXPECT_THAT(members.lingering, IsEmpty());
  EXPECT_THAT(members.unknown, IsEmpty());
  EXPECT_EQ(resolver_.calls, 1) << "side by side";
}

TEST_F(MembersTest, WhoeverDoesNotUseNamesNeitherAsksNorLeavesAFile) {
  sources_.dns.clear();
  EXPECT_THAT(urls(find().endpoints), ElementsAre("unix:/own.sock"));
  EXPECT_EQ(resolver_.calls, 0);
  EXPECT_THAT(files_.names_in("/data"), IsEmpty());
}

TEST_F(MembersTest, WhoIsNoLongerListedLingersUntilItIsForgotten) {
  resolver_.answers["x:7420"] = listing({"http://a:1", "http://b:1"});
  find();
  resolver_.answers["x:7420"] = listing({"http://a:1"});
  states_["http://b:1"] = AddressState::silent;
  clock_.advance(std::chrono::hours(1));
  for (int hour = 1; hour <= 24; ++hour) {
    const auto members = find();
    EXPECT_THAT(urls(members.endpoints), ElementsAre("unix:/own.sock", "http://a:1"));
    EXPECT_THAT(urls(members.lingering), ElementsAre("http://b:1"));
    EXPECT_THAT(members.unknown, IsEmpty());
    clock_.advance(std::chrono::hours(1));
  }
  EXPECT_THAT(find().lingering, IsEmpty());
}

// As a pod does that is not ready, and goes on acknowledging marks.
TEST_F(MembersTest, WhoAnswersIsAskedForAsLongAsItDoes) {
  resolver_.answers["x:7420"] = listing({"http://a:1"});
  sources_.registry = {"etcd", [] { return registered({"http://b:1"}); }};
  find();
  resolver_.answers["x:7420"] = {};
  sources_.registry->list = [] { return registered({}); };
  for (int week = 0; week < 10; ++week) {
    clock_.advance(std::chrono::hours(24 * 7));
    EXPECT_THAT(urls(find().lingering), ElementsAre("http://a:1", "http://b:1"));
  }
}

// Nobody is forgotten before he was asked, however long the last scan was ago.
TEST_F(MembersTest, ALongPauseForgetsNobody) {
  resolver_.answers["x:7420"] = listing({"http://a:1"});
  find();
  resolver_.answers["x:7420"] = {};
  states_["http://a:1"] = AddressState::silent;
  for (int scan = 0; scan < 4; ++scan) {
    clock_.advance(std::chrono::hours(24 * 365));
    EXPECT_THAT(urls(find().lingering), ElementsAre("http://a:1"));
  }
  EXPECT_THAT(find().lingering, IsEmpty());
}

TEST_F(MembersTest, AnAddressThatItsNodeLeftIsNotAskedAgain) {
  resolver_.answers["x:7420"] = listing({"http://a:1"});
  find();
  resolver_.answers["x:7420"] = listing({"http://b:1"});
  states_["http://a:1"] = AddressState::left;
  EXPECT_THAT(urls(find().lingering), ElementsAre("http://a:1"));
  EXPECT_THAT(find().lingering, IsEmpty());
}

TEST_F(MembersTest, AScanThatWasNotSettledForgetsNobody) {
  sources_.forget_after = std::chrono::milliseconds(0);
  resolver_.answers["x:7420"] = listing({"http://a:1"});
  find();
  resolver_.answers["x:7420"] = {};
  for (int scan = 0; scan < 3; ++scan) {
    clock_.advance(std::chrono::hours(1000));
    EXPECT_THAT(urls(find_members(sources_, resolver_, store()).lingering), ElementsAre("http://a:1"));
  }
}

TEST_F(MembersTest, WhoLingersInOneSourceAndIsListedInAnotherIsListed) {
  resolver_.answers["x:7420"] = listing({"http://a:1", "unix:/own.sock"});
  find();
  resolver_.answers["x:7420"] = {};
  sources_.static_endpoints = {parse_endpoint("http://a:1").value()};
  const auto members = find();
  EXPECT_THAT(urls(members.endpoints), ElementsAre("unix:/own.sock", "http://a:1"));
  EXPECT_THAT(members.lingering, IsEmpty());
}

TEST_F(MembersTest, ASourceThatDoesNotAnswerIsUnknownAndListsWhomItListedLast) {
  resolver_.answers["x:7420"] = listing({"http://a:1"});
  sources_.registry = {"etcd http://e", [] { return registered({"http://b:1"}); }};
  find();
  clock_.advance(std::chrono::hours(1000));
  resolver_.answers["x:7420"] = no_answer;
  sources_.registry->list = [] {
    return base::Result<RegistryAnswer>(base::Error(std::make_error_code(std::errc::timed_out), "no lease"));
  };
  const auto members = find();
  EXPECT_THAT(urls(members.endpoints), ElementsAre("unix:/own.sock", "http://a:1", "http://b:1"));
  EXPECT_THAT(members.unknown, ElementsAre("dns x:7420: no answer in time", "etcd http://e: no lease"));
}

TEST_F(MembersTest, WhoLeftTheRegistryLingersForItsOwnTime) {
  sources_.registry = {"etcd", [] { return registered({"http://b:1", "http://c:1"}); },
                       std::chrono::hours(4)};
  find();
  sources_.registry->list = [] { return registered({"http://c:1"}); };
  states_["http://b:1"] = AddressState::silent;
  for (int hour = 1; hour <= 4; ++hour) {
    clock_.advance(std::chrono::hours(1));
    const auto members = find();
    EXPECT_THAT(urls(members.endpoints), ElementsAre("unix:/own.sock", "http://c:1"));
    EXPECT_THAT(urls(members.lingering), ElementsAre("http://b:1"));
  }
  EXPECT_THAT(find().lingering, IsEmpty());
}

TEST_F(MembersTest, ARegistryNamesWhoLingersAtOnce) {
  sources_.registry = {"etcd", [] { return registered({"http://b:1"}, {"http://a:1", "http://b:1"}); }};
  const auto members = find();
  EXPECT_THAT(urls(members.endpoints), ElementsAre("unix:/own.sock", "http://b:1"));
  EXPECT_THAT(urls(members.lingering), ElementsAre("http://a:1"));
}

TEST_F(MembersTest, AnOddAddressIsAProblemOfItsSource) {
  resolver_.answers["x:7420"].endpoints = {{"[a", 80, {}}, {"fine", 80, {}}, {"a b", 80, {}}};
  const std::vector<Endpoint> registry_listed{{"", 80, {}}};
  const std::vector<Endpoint> registry_lingering{{"a\nb", 80, {}}, {"here", 0, {}}};
  sources_.registry = {
      "etcd",
      [&] { return base::Result<RegistryAnswer>(RegistryAnswer{registry_listed, registry_lingering}); }};
  const auto members = find();
  EXPECT_THAT(urls(members.endpoints), ElementsAre("unix:/own.sock", "http://fine:80"));
  EXPECT_THAT(members.lingering, IsEmpty());
  EXPECT_THAT(members.unknown, ElementsAre(AllOf(StartsWith("dns x:7420: "), HasSubstr("http://[a:80")),
                                           AllOf(StartsWith("etcd: "), HasSubstr("there is no host"))));
}

TEST_F(MembersTest, ASourceThatNeverAnsweredIsUnknown) {
  resolver_.answers["x:7420"] = no_answer;
  const auto members = find();
  EXPECT_THAT(urls(members.endpoints), ElementsAre("unix:/own.sock"));
  EXPECT_THAT(members.unknown, ElementsAre("dns x:7420: no answer in time"));
}

TEST_F(MembersTest, ADamagedRollIsUnknownForOneScan) {
  resolver_.answers["x:7420"] = listing({"http://a:1"});
  files_.put("/data/members.json", "{");
  const auto members = find();
  EXPECT_THAT(urls(members.endpoints), ElementsAre("unix:/own.sock", "http://a:1"));
  EXPECT_THAT(members.unknown, ElementsAre(HasSubstr("/data/members.json is corrupt")));
  EXPECT_THAT(find().unknown, IsEmpty());
}

TEST_F(MembersTest, ADamagedRollOfNoUseIsUnknownForOneScanToo) {
  sources_.dns.clear();
  files_.put("/data/members.json", "{");
  EXPECT_THAT(find().unknown, ElementsAre(HasSubstr("corrupt")));
  EXPECT_THAT(find().unknown, IsEmpty());
}

TEST_F(MembersTest, ARollThatCannotBeReadIsLeftAsItIs) {
  resolver_.answers["x:7420"] = listing({"http://a:1", "http://b:1"});
  find();
  resolver_.answers["x:7420"] = listing({"http://a:1"});
  files_.fail_call(1, EIO);
  const auto members = find();  // settles nothing
  EXPECT_THAT(members.unknown, ElementsAre(HasSubstr("members.json")));
  EXPECT_THAT(members.lingering, IsEmpty());
  EXPECT_THAT(urls(find().lingering), ElementsAre("http://b:1"));
}

TEST_F(MembersTest, ARollThatCannotBeWrittenIsUnknown) {
  resolver_.answers["x:7420"] = listing({"http://a:1"});
  files_.fill("/data");
  const auto members = find_members(sources_, resolver_, store());
  EXPECT_THAT(urls(members.endpoints), ElementsAre("unix:/own.sock", "http://a:1"));
  EXPECT_THAT(members.unknown, ElementsAre(HasSubstr("members.json")));
  EXPECT_FALSE(settle_members(members, ask(members), store()));
  files_.heal("/data");
  EXPECT_TRUE(settle_members(members, ask(members), store()));
  resolver_.answers["x:7420"] = {};
  EXPECT_THAT(urls(find().lingering), ElementsAre("http://a:1"));
}

TEST_F(MembersTest, TheRollIsWrittenBeforeTheyAreAskedOnlyWhereItChanged) {
  resolver_.answers["x:7420"] = listing({"http://a:1"});
  find();
  clock_.advance(std::chrono::hours(1));
  files_.reset_calls();
  find_members(sources_, resolver_, store());
  EXPECT_EQ(files_.calls(), 1U) << "it is read, and not written";
}

TEST_F(MembersTest, ADryRunWritesNothing) {
  resolver_.answers["x:7420"] = listing({"http://a:1"});
  const RollStore dry{
      .files = files_, .data_dir = "/data", .clock = clock_, .cursors = cursors_, .read_only = true};
  const auto members = find_members(sources_, resolver_, dry);
  EXPECT_THAT(urls(members.endpoints), ElementsAre("unix:/own.sock", "http://a:1"));
  EXPECT_TRUE(settle_members(members, ask(members), dry));
  EXPECT_THAT(files_.names_in("/data"), IsEmpty());
  files_.put("/data/members.json", "{");
  EXPECT_THAT(find_members(sources_, resolver_, dry).unknown, ElementsAre(HasSubstr("corrupt")));
  EXPECT_EQ(files_.content("/data/members.json"), "{");
}

}  // namespace
}  // namespace spoor::peer
