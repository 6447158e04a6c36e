// A node's name in a frame is a claim: no peer may move the cycle of another one.
#include "peer/http/certificate_names.h"
#include "tests/peer/gather_fixture.h"

namespace spoor::peer {
namespace {

using testing::AllOf;
using testing::UnorderedElementsAre;
using Names = std::vector<std::string>;

// Nodes "a", the scanner's own, and "b"; "x" claims to be another one. All were read once.
class NameBindingTest : public GatherFixture {
 protected:
  NameBindingTest() : GatherFixture({"a", "b", "x"}) {
    pause_ = std::chrono::hours(1);
    options_.own_url = url("a");
    options_.own_name = "a";
    options_.own_instance = instance_of("a");
    scan();
  }

  static std::string url(const std::string& host) { return FakeCluster::endpoint(host).to_string(); }

  tracker::InstanceId instance_of(const std::string& host) { return cluster_.id(host).instance; }

  // Of a cycle that no node has reached.
  std::string claim_of(const std::string& name, const tracker::InstanceId& instance, std::uint64_t run = 0) {
    CycleFrame frame{{"c", name}, run, 0, {}};
    frame.answer.instance = instance;
    frame.answer.current = {cycle_of("a") + 1};
    return encode_cycle_frame(frame);
  }

  // "x" responds under this name from now on.
  void claim(const std::string& name, const tracker::InstanceId& instance, std::uint64_t run = 0) {
    cluster_["x"].garbage = claim_of(name, instance, run);
  }

  // "x" passes on where this node is, under its name or another.
  void relay(const std::string& host, const std::string& name = {}) {
    CycleFrame frame{{"c", name.empty() ? host : name}, 0, 0, {}};
    frame.answer.instance = instance_of(host);
    frame.answer.current = cluster_[host].tracker->status().current;
    cluster_["x"].garbage = encode_cycle_frame(frame);
  }

  // "b" is read at the address "old", which is silent from then on, and responds at "new".
  void move_b() {
    book_.clear();
    cluster_.alias("b", "old");
    listed_ = {"a", "old"};
    scan();
    cluster_.remove_alias("old");
    cluster_.alias("b", "new");
    scan();
  }

  void prove_all() {
    for (const char* host : {"a", "b", "x"}) {
      cluster_[host].certificate_names = {host + std::string(".storage.example")};
    }
  }

  // While "b" is down "x" claims its name; then "b" is back, and one more scanner opens a cycle.
  void expect_nothing_hidden() {
    const auto before = book_.at(cluster_.id("b"));
    cluster_["b"].is_down = true;
    claim("b", instance_of("b"));
    const auto partial = scan();
    EXPECT_FALSE(partial.complete());
    EXPECT_THAT(partial.gaps, IsEmpty());
    EXPECT_EQ(book_.at(cluster_.id("b")), before);

    cluster_["b"].is_down = false;
    cluster_["x"].garbage.clear();
    mark("b", "bucket/acknowledged");
    advance("b", cycle_of("a") + 5);
    EXPECT_TRUE(holds(scan(), "bucket/acknowledged"));
  }
};

// --- certificates ---

TEST_F(NameBindingTest, CertificateOfAnotherNode_IsAFailedPeer) {
  prove_all();
  cluster_["b"].is_down = true;
  claim("b", instance_of("b"));
  EXPECT_THAT(error_of(scan()),
              AllOf(HasSubstr("issued for 'x.storage.example'"), HasSubstr("the node calls itself 'b'"),
                    HasSubstr("set its node.name")));
  expect_nothing_hidden();
}

// Listed or not: the certificate decides.
TEST_F(NameBindingTest, CertificateOfAnotherNode_DepartedAddress_IsAFailedPeer) {
  prove_all();
  listed_ = {"a", "x"};
  expect_nothing_hidden();
}

TEST_F(NameBindingTest, CertificateOfAnotherNodeInTheSecondRound_IsAFailedPeer) {
  prove_all();
  const auto before = book_.at(cluster_.id("b"));
  before_request("b", 2, [](auto& node) { node.certificate_names = {"x.storage.example"}; });
  EXPECT_THAT(error_of(scan()), HasSubstr("issued for 'x.storage.example'"));
  EXPECT_EQ(book_.at(cluster_.id("b")), before);
}

TEST_F(NameBindingTest, CertificateForTheName_MovesItToAnotherAddress) {
  prove_all();
  move_b();
  listed_ = {"a", "new", "old"};
  mark("b", "bucket/x");
  const auto gathered = scan();
  EXPECT_THAT(gathered.gaps, IsEmpty());
  EXPECT_THAT(gathered.warnings, IsEmpty());
  EXPECT_TRUE(holds(gathered, "bucket/x"));
}

// One of an authority that the system trusts is to be had for any domain: it proves no name.
TEST_F(NameBindingTest, CertificateOfAForeignAuthority_MovesNoCursor) {
  prove_all();
  scan();
  cluster_["x"].certificate_names = {"b.attacker.example"};
  cluster_["x"].is_own_authority = false;
  expect_nothing_hidden();
}

// From the time before TLS, or listed by mistake: anybody may respond there.
TEST_F(NameBindingTest, CertificateForTheName_OutranksAddressWithoutCertificate) {
  cluster_.add("with-tls");
  std::swap(cluster_["with-tls"], cluster_["b"]);
  cluster_["with-tls"].certificate_names = {"b.storage.example"};
  cluster_["b"].garbage = claim_of("b", instance_of("with-tls"));
  listed_ = {"a", "b", "x", "with-tls"};
  mark("with-tls", "bucket/acknowledged");
  const auto gathered = scan();
  EXPECT_TRUE(gathered.complete()) << error_of(gathered);
  EXPECT_THAT(gathered.gaps, IsEmpty());
  EXPECT_TRUE(holds(gathered, "bucket/acknowledged"));
}

TEST(CertificateNamesTest, FirstLabelOrWholeName_IsIssuedFor) {
  const Names names{"Node1.storage.example", "spare"};
  for (const char* node : {"node1", "NODE1", "node1.storage.example", "spare"}) {
    EXPECT_TRUE(is_issued_for(names, node)) << node;
  }
  for (const char* node : {"", "node", "node10", "node1.storage", "storage", "node2"}) {
    EXPECT_FALSE(is_issued_for(names, node)) << node;
  }
}

TEST(CertificateNamesTest, WildcardsAndAddresses_AreNoOwnCredential) {
  EXPECT_TRUE(is_own_credential(Names{"node1"}));
  EXPECT_TRUE(is_own_credential(Names{"10.0.0.1", "node1"}));
  EXPECT_FALSE(is_own_credential(Names{}));
  EXPECT_FALSE(is_own_credential(Names{"10.0.0.1", "fd00::1"}));
  EXPECT_FALSE(is_own_credential(Names{"*.storage.example"}));
  EXPECT_FALSE(is_own_credential(Names{"spoor.storage.example", "*.spoor.storage.example"}));
}

TEST(CertificateNamesTest, UntrustedNames_AreQuotedAndBounded) {
  EXPECT_EQ(quoted_names(Names{"a", "b\n"}).find('\n'), std::string::npos);
  EXPECT_EQ(quoted_names(Names{"a", "b", "c", "d", "e"}), "'a', 'b', 'c', 'd' and others");
}

// --- addresses, without certificates ---

TEST_F(NameBindingTest, NameOfASilentAddress_KeepsItsCursor) {
  cluster_["b"].is_down = true;
  claim("b", instance_of("b"));
  EXPECT_THAT(error_of(scan()),
              AllOf(HasSubstr("node 'b' was last found at http://b:7420, which does not respond"),
                    HasSubstr("http://x:7420 claims its name")));
  expect_nothing_hidden();
}

TEST_F(NameBindingTest, NameOfASilentAddress_MarksAreStillMerged) {
  move_b();
  listed_ = {"a", "old", "new"};
  mark("b", "bucket/x");
  const auto before = book_.at(cluster_.id("b"));
  for (int times = 0; times < 2; ++times) {
    const auto gathered = scan();
    EXPECT_FALSE(gathered.complete());
    EXPECT_THAT(gathered.gaps, IsEmpty());
    EXPECT_TRUE(holds(gathered, "bucket/x"));
    EXPECT_EQ(book_.at(cluster_.id("b")), before);
  }
}

// A peer may pass on what another node answers, and so be taken for an address of that node.
TEST_F(NameBindingTest, SecondAddress_IsNoProofOfTheName) {
  listed_ = {"a", "x", "b"};
  relay("b");
  mark("b", "bucket/x");
  EXPECT_TRUE(holds(scan(), "bucket/x")) << "the node is asked, not the one that relays";
  cluster_["x"].is_down = true;
  scan();  // it is silent for a while
  cluster_["x"].is_down = false;
  relay("b");
  scan();
  expect_nothing_hidden();
}

TEST_F(NameBindingTest, DuplicateNodeNameOfLivingNode_DoesNotTakeOverItsName) {
  claim("b", instance_of("b"), 7);
  EXPECT_THAT(scan().gaps, ElementsAre(HasSubstr("2 running trackers call themselves 'b'")));
  cluster_["b"].is_down = true;
  EXPECT_THAT(error_of(scan()), HasSubstr("claims its name"));
  cluster_["b"].is_down = false;
  cluster_["x"].garbage.clear();
  EXPECT_THAT(scan().gaps, ElementsAre(HasSubstr("'b' lost, or no longer keeps")));
  expect_nothing_hidden();
}

TEST_F(NameBindingTest, NewInstanceFailsInTheSecondRound_KeepsItsAddress) {
  cluster_.start_anew(cluster_["b"]);
  before_request("b", 2, [](auto& node) { node.is_down = true; });
  scan();
  claim("b", instance_of("b"));
  EXPECT_THAT(error_of(scan()), HasSubstr("claims its name"));
}

// As a pod that is started elsewhere: the DNS has its new address only.
TEST_F(NameBindingTest, DepartedAddress_NameMovesWithOneWarning) {
  move_b();
  listed_ = {"a", "new"};
  mark("b", "bucket/x");
  const auto gathered = scan();
  EXPECT_TRUE(gathered.complete()) << error_of(gathered);
  EXPECT_THAT(gathered.gaps, IsEmpty());
  EXPECT_THAT(gathered.warnings,
              ElementsAre("node 'b' was last found at http://old:7420, and is now at http://new:7420"));
  EXPECT_TRUE(holds(gathered, "bucket/x"));
  const auto next = scan();
  EXPECT_TRUE(next.complete());
  EXPECT_THAT(next.gaps, IsEmpty());
  EXPECT_THAT(next.warnings, IsEmpty());
}

TEST_F(NameBindingTest, AddressUnderAnotherName_NameMovesWithAWarning) {
  std::swap(cluster_["b"], cluster_["x"]);
  const auto gathered = scan();
  EXPECT_TRUE(gathered.complete()) << error_of(gathered);
  EXPECT_THAT(gathered.gaps, IsEmpty());
  EXPECT_THAT(gathered.warnings,
              UnorderedElementsAre("node 'b' was last found at http://b:7420, and is now at http://x:7420",
                                   "node 'x' was last found at http://x:7420, and is now at http://b:7420"));
  EXPECT_THAT(scan().warnings, IsEmpty());
}

TEST_F(NameBindingTest, DisputedTrackerOfAnotherInstance_StaysExpectedIfItIntroducedItself) {
  cluster_["b"].is_down = true;
  cluster_.add("new", "b");
  cluster_.record("a", cluster_.id("new"));
  listed_ = {"a", "b", "x", "new"};
  EXPECT_FALSE(scan().complete());
  cluster_["new"].is_down = true;
  listed_ = {"a", "x"};
  for (int times = 0; times < 2; ++times) EXPECT_FALSE(scan().complete());
  EXPECT_TRUE(book_.contains(cluster_.id("new")));
}

TEST_F(NameBindingTest, NameThatEtcdListsAtASilentAddress_KeepsItsCursor) {
  options_.members.listed_homes["b"] = {url("moved")};
  listed_ = {"a", "x", "moved"};
  cluster_["b"].is_down = true;
  const auto before = book_.at(cluster_.id("b"));
  claim("b", instance_of("b"));
  EXPECT_THAT(error_of(scan()),
              AllOf(HasSubstr("node 'b' is listed at http://moved:7420, which does not respond"),
                    HasSubstr("http://x:7420 claims its name")));
  EXPECT_EQ(book_.at(cluster_.id("b")), before);
}

// It lost its disk, and has registered at another address.
TEST_F(NameBindingTest, HomeThatIsNotAliveInEtcd_KeepsNoNameFromAListedAddress) {
  cluster_["b"].is_down = true;
  cluster_.add("new", "b");
  options_.members.listed_homes["b"] = {url("b"), url("new")};
  options_.members.not_alive = {url("b")};
  listed_ = {"a", "b", "x", "new"};
  const auto gathered = scan();
  EXPECT_TRUE(gathered.complete());
  EXPECT_THAT(gathered.gaps, ElementsAre(HasSubstr("peer 'b' lost")));
  EXPECT_TRUE(scan().gaps.empty());
}

TEST_F(NameBindingTest, HomeThatIsNotAliveInEtcd_KeepsItsNameFromAnAddressThatIsNotListedForIt) {
  cluster_["b"].is_down = true;
  options_.members.listed_homes["b"] = {url("b")};
  options_.members.not_alive = {url("b")};
  claim("b", instance_of("b"));
  EXPECT_THAT(error_of(scan()), HasSubstr("claims its name"));
}

// --- names that were never read ---

TEST_F(NameBindingTest, NameNeverReadAtTwoAddresses_IsReadAtTheFirstWithAWarning) {
  book_.clear();
  relay("b");
  listed_ = {"a", "x", "b"};
  EXPECT_THAT(
      scan().warnings,
      ElementsAre(HasSubstr("'b', read for the first time, answers at http://x:7420 and at http://b:7420")));
}

// etcd knows where it is.
TEST_F(NameBindingTest, NameNeverReadAtItsListedAddress_IsReadThere) {
  book_.clear();
  options_.members.listed_homes["b"] = {url("b")};
  listed_ = {"a", "x", "b"};
  relay("b");
  EXPECT_THAT(scan().warnings, IsEmpty());
  mark("b", "bucket/acknowledged");
  EXPECT_TRUE(holds(scan(), "bucket/acknowledged"));
}

TEST_F(NameBindingTest, NameNeverReadWhoseListedAddressIsSilent_IsRefusedToOtherNode) {
  book_.clear();
  options_.members.listed_homes["b"] = {url("b")};
  cluster_["b"].is_down = true;
  claim("b", instance_of("b"));
  EXPECT_THAT(error_of(scan()), HasSubstr("claims its name"));
  EXPECT_FALSE(book_.contains(cluster_.id("b")));
  cluster_["b"].is_down = false;
  cluster_["x"].garbage.clear();
  mark("b", "bucket/acknowledged");
  const auto gathered = scan();
  EXPECT_THAT(gathered.gaps, IsEmpty());
  EXPECT_TRUE(holds(gathered, "bucket/acknowledged"));
}

// --- the node's own daemon ---

// A member that passes on what the own daemon answers, under either name, becomes no home of it.
TEST_F(NameBindingTest, OwnNameOfASilentOwnDaemon_KeepsItsCursor) {
  for (const char* name : {"a", "x"}) {
    SCOPED_TRACE(name);
    relay("a", name);
    scan();
    mark("a", std::string("bucket/") + name);
    const auto before = book_.at(cluster_.id("a"));
    cluster_["a"].is_down = true;
    claim("a", instance_of("a"));
    EXPECT_FALSE(scan().complete());
    EXPECT_EQ(book_.at(cluster_.id("a")), before);
    cluster_["a"].is_down = false;
    advance("a", before.cycle.value + 5);
    relay("a", name);
    EXPECT_TRUE(holds(scan(), std::string("bucket/") + name));
    cluster_["x"].garbage.clear();
    scan();
  }
}

TEST_F(NameBindingTest, OwnNameOfAnotherInstance_IsPartialAndKeepsItsCursor) {
  const auto before = book_.at(cluster_.id("a"));
  options_.own_instance = tracker::InstanceId::random();
  const auto gathered = scan();
  EXPECT_FALSE(gathered.complete());
  EXPECT_THAT(error_of(gathered), HasSubstr("it has the name of this node, and is another daemon"));
  EXPECT_EQ(book_.at(cluster_.id("a")), before);
}

}  // namespace
}  // namespace spoor::peer
