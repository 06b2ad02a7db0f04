// Network policies: rows of the contract, and any policies against an oracle that looks at one
// packet at a time.

#include "agent/network/policy_planner.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "base/time.h"
#include "json/parse.h"
#include "schema/label_selector.h"

namespace muster::agent {
namespace {

using json::Value;

struct Packet {
  Ipv4 from, to;
  ServiceProtocol protocol = ServiceProtocol::kTcp;
  uint16_t port = 0;
};

// What the kernel does with a table (policy_dataplane.h).
bool Allows(const PolicyTable& table, const std::string& name, const Packet& packet) {
  const PolicyChain& chain = table.chains.at(name);
  const Ipv4 other = chain.ingress ? packet.from : packet.to;
  if (!chain.both.empty()) {
    return std::ranges::all_of(
        chain.both, [&](const std::string& part) { return Allows(table, part, packet); });
  }
  return std::ranges::any_of(chain.allow, [&](const PolicyMatch& match) {
    if (!match.peers.empty() && !table.peers.at(match.peers).contains(other)) return false;
    if (match.range && !match.range->Contains(other)) return false;
    for (const Ipv4Prefix& except : match.except)
      if (except.Contains(other)) return false;
    if (match.protocol && *match.protocol != packet.protocol) return false;
    return match.last_port == 0 ||
           (match.first_port <= packet.port && packet.port <= match.last_port);
  });
}

bool Passes(const PolicyTable& table, const Packet& packet) {
  const auto out = table.egress.find(packet.from);
  if (out != table.egress.end() && !Allows(table, out->second, packet)) return false;
  const auto in = table.ingress.find(packet.to);
  return in == table.ingress.end() || Allows(table, in->second, packet);
}

Value Parsed(const std::string& text) {
  auto value = json::Parse(text);
  EXPECT_TRUE(value) << text;
  return value.value_or(Value());
}

Ipv4 Address(int last) { return Ipv4{0x0A2A0000 + static_cast<uint32_t>(last)}; }

Value PodOf(const std::string& ns, const std::string& labels, int last,
            const std::string& ports = "[]") {
  return Parsed(R"({"metadata":{"namespace":")" + ns + R"(","name":"p)" + std::to_string(last) +
                R"(","labels":)" + labels + R"(},"spec":{"containers":[{"name":"main","ports":)" +
                ports + R"(}]},"status":{"podIP":")" + Address(last).ToString() + R"("}})");
}

Value PolicyOf(const std::string& ns, const std::string& spec) {
  return Parsed(R"({"metadata":{"namespace":")" + ns + R"(","name":"x"},"spec":)" + spec + "}");
}

Value NamespaceOf(const std::string& name, const std::string& labels) {
  return Parsed(R"({"metadata":{"name":")" + name + R"(","labels":)" + labels + "}}");
}

constexpr int kWeb = 2, kClient = 3, kStranger = 4;

// A server, a client of its namespace and a stranger, and one policy for the server.
PolicyInput WebWith(const std::string& spec) {
  PolicyInput input;
  input.namespaces = {NamespaceOf("a", R"({"team":"one"})"), NamespaceOf("b", R"({"team":"two"})")};
  input.local_pods = {
      PodOf("a", R"({"app":"web"})", kWeb, R"([{"name":"http","containerPort":8080}])"),
      PodOf("a", R"({"app":"client"})", kClient),
      PodOf("b", R"({"app":"client"})", kStranger,
            R"([{"name":"http","containerPort":9090},
                {"name":"dns","protocol":"UDP","containerPort":53}])")};
  input.policies = {PolicyOf("a", spec)};
  return input;
}

struct Row {
  std::string spec;
  bool client, stranger, outside;  // may reach port 8080 of the server
};

TEST(PolicyPlanner, WhoMayComeIn) {
  const std::string web = R"({"podSelector":{"matchLabels":{"app":"web"}},)";
  for (const Row& row : std::vector<Row>{
           {R"({"podSelector":{"matchLabels":{"app":"other"}}})", true, true, true},
           {R"({"podSelector":{}})", false, false, false},
           {web + R"("policyTypes":["Egress"]})", true, true, true},
           {web + R"("ingress":[]})", false, false, false},
           {web + R"("ingress":[{}]})", true, true, true},
           {web + R"("ingress":[{"from":[{"podSelector":{}}]}]})", true, false, false},
           {web + R"("ingress":[{"from":[{"podSelector":{"matchLabels":{"app":"x"}}}]}]})", false,
            false, false},
           {web + R"("ingress":[{"from":[{"namespaceSelector":{}}]}]})", true, true, false},
           {web + R"("ingress":[{"from":[{"namespaceSelector":{"matchLabels":{"team":"two"}}}]}]})",
            false, true, false},
           {web + R"("ingress":[{"from":[{"namespaceSelector":{"matchLabels":{"team":"two"}},
                                          "podSelector":{"matchLabels":{"app":"web"}}}]}]})",
            false, false, false},
           {web + R"("ingress":[{"from":[{"ipBlock":{"cidr":"10.42.0.0/16",
                                                     "except":["10.42.0.4/32"]}}]}]})",
            true, false, false},
           {web + R"("ingress":[{"from":[{"ipBlock":{"cidr":"0.0.0.0/0"}}]}]})", true, true, true},
           {web + R"("ingress":[{"from":[{"ipBlock":{"cidr":"fd00::/8"}}]}]})", false, false,
            false},
           {web + R"("ingress":[{"ports":[{"port":8080}]}]})", true, true, true},
           {web + R"("ingress":[{"ports":[{"port":8081}]}]})", false, false, false},
           {web + R"("ingress":[{"ports":[{"protocol":"UDP","port":8080}]}]})", false, false,
            false},
           {web + R"("ingress":[{"ports":[{}]}]})", true, true, true},
           {web + R"("ingress":[{"ports":[{"port":8000,"endPort":8080}]}]})", true, true, true},
           {web + R"("ingress":[{"ports":[{"port":8000,"endPort":8079}]}]})", false, false, false},
           {web + R"("ingress":[{"ports":[{"port":"http"}]}]})", true, true, true},
           {web + R"("ingress":[{"ports":[{"port":"dns"}]}]})", false, false, false},
           {web + R"("ingress":[{"ports":[{"protocol":"UDP","port":"http"}]}]})", false, false,
            false},
           {web + R"("ingress":[{"ports":[{"port":1}]},{"from":[{"podSelector":{}}]}]})", true,
            false, false},
           // What cannot be read allows nothing.
           {web + R"("ingress":[{"from":[{}]}]})", false, false, false},
           {web + R"("ingress":[{"ports":[{"port":0}]}]})", false, false, false},
       }) {
    const PolicyTable table = PlanPolicies(WebWith(row.spec));
    const auto may = [&](Ipv4 from) {
      return Passes(table, {from, Address(kWeb), ServiceProtocol::kTcp, 8080});
    };
    EXPECT_EQ(may(Address(kClient)), row.client) << row.spec;
    EXPECT_EQ(may(Address(kStranger)), row.stranger) << row.spec;
    EXPECT_EQ(may(*Ipv4::Parse("192.0.2.1")), row.outside) << row.spec;
    const auto again = ParsePolicyTable(ToText(table));
    ASSERT_TRUE(again) << again.error().ToString();
    EXPECT_EQ(*again, table);
  }
}

TEST(PolicyPlanner, PortsByNameAreThoseOfThePodThatIsConnectedTo) {
  const std::string client = R"({"podSelector":{"matchLabels":{"app":"client"}},)";
  const PolicyTable table = PlanPolicies(
      WebWith(client + R"("policyTypes":["Egress"],"egress":[{"ports":[{"port":"http"}]}]})"));
  const auto may = [&](int to, uint16_t port) {
    return Passes(table, {Address(kClient), Address(to), ServiceProtocol::kTcp, port});
  };
  EXPECT_TRUE(may(kWeb, 8080));
  EXPECT_FALSE(may(kWeb, 9090));
  EXPECT_TRUE(may(kStranger, 9090));
  EXPECT_FALSE(may(kStranger, 8080));
}

TEST(PolicyPlanner, PodsOnTheNodesNetworkAreNotRestrictedNorMeant) {
  PolicyInput input = WebWith(R"({"podSelector":{},"ingress":[{"from":[{"podSelector":{}}]}]})");
  input.local_pods[1] = input.local_pods[1].SetPath({"spec", "hostNetwork"}, true);
  const PolicyTable table = PlanPolicies(input);
  EXPECT_FALSE(table.ingress.contains(Address(kClient)));
  EXPECT_FALSE(Passes(table, {Address(kClient), Address(kWeb), ServiceProtocol::kTcp, 1}));
}

// An address that had another pod before is not that pod's any more.
TEST(PolicyPlanner, PodsThatEndedElsewhereAreNotMeant) {
  PolicyInput input = WebWith(R"({"podSelector":{},"ingress":[{"from":[{"podSelector":{}}]}]})");
  input.other_pods = {PodOf("a", "{}", 9)};
  EXPECT_TRUE(Passes(PlanPolicies(input), {Address(9), Address(kWeb), ServiceProtocol::kTcp, 1}));
  input.other_pods = {PodOf("a", "{}", 9).SetPath({"status", "phase"}, "Failed")};
  EXPECT_FALSE(Passes(PlanPolicies(input), {Address(9), Address(kWeb), ServiceProtocol::kTcp, 1}));
}

TEST(PolicyPlanner, WhatSharesAnAddressMustBeAllowedToEach) {
  PolicyInput input = WebWith(
      R"({"podSelector":{"matchLabels":{"app":"web"}},
          "ingress":[{"ports":[{"port":80},{"port":81}]}]})");
  input.local_pods.push_back(PodOf("a", R"({"app":"second"})", kWeb));
  const auto may = [&](uint16_t port) {
    return Passes(PlanPolicies(input),
                  {Address(kClient), Address(kWeb), ServiceProtocol::kTcp, port});
  };
  EXPECT_TRUE(may(80));
  input.policies.push_back(PolicyOf("a", R"({"podSelector":{"matchLabels":{"app":"second"}},
      "ingress":[{"ports":[{"port":81},{"port":82}]}]})"));
  EXPECT_FALSE(may(80));
  EXPECT_TRUE(may(81));
  EXPECT_FALSE(may(82));
  const PolicyTable table = PlanPolicies(input);
  EXPECT_EQ(*ParsePolicyTable(ToText(table)), table);
}

TEST(PolicyPlanner, PodsOfTheSameRulesShareAChainAndAPodMoreChangesSetsAlone) {
  PolicyInput input =
      WebWith(R"({"podSelector":{},"ingress":[{"from":[{"namespaceSelector":{}}]}]})");
  const PolicyTable before = PlanPolicies(input);
  EXPECT_EQ(before.ingress.size(), 2U);
  EXPECT_EQ(before.chains.size(), 1U);
  input.other_pods = {PodOf("b", "{}", 9)};
  const PolicyTable after = PlanPolicies(input);
  EXPECT_EQ(after.chains, before.chains);
  EXPECT_EQ(after.ingress, before.ingress);
  EXPECT_NE(after.peers, before.peers);
}

TEST(PolicyTable, WhatIsNoneIsRefused) {
  for (const char* text :
       {"x", "peers", "peers other 10.0.0.1", "peers policy_peers_1 x", "chain policy_chain_1",
        "chain policy_chain_1 up", "chain x in", "allow - - any 0 0", "in 10.0.0.1 policy_chain_1",
        "chain policy_chain_1 in\nout 10.0.0.1 policy_chain_1",
        "chain policy_chain_1 in\nallow policy_peers_1 - any 0 0",
        "chain policy_chain_1 in\nallow - - any 1 1", "chain policy_chain_1 in\nallow - - TCP 2 1",
        "chain policy_chain_1 in\nallow - - TCP 1 70000",
        "chain policy_chain_1 in\nallow - - any 0 0 10.0.0.0/8", "both policy_chain_1 in",
        "both policy_chain_1 in policy_chain_2"}) {
    EXPECT_FALSE(ParsePolicyTable(text)) << text;
  }
  const std::string name = std::string(kPolicyPeersPrefix) + std::string(kMaxPolicyNameBytes, 'x');
  EXPECT_TRUE(ParsePolicyTable("peers " + name.substr(0, kMaxPolicyNameBytes)));
  EXPECT_FALSE(ParsePolicyTable("peers " + name.substr(0, kMaxPolicyNameBytes + 1)));
}

// The oracle: from the objects, for one packet, as the API's words say it.

bool Selects(const Value& selector, const Value& labels) {
  return schema::LabelSelector::FromJson(selector)->Matches(labels);
}

// `other`: a pod with this address, nullptr for the address alone.
bool PeerIs(const PolicyInput& input, const std::string& own_ns, const Value& peer, Ipv4 address,
            const Value* other) {
  if (peer.Has("ipBlock")) {
    if (!Ipv4Prefix::Parse(peer["ipBlock"]["cidr"].AsString())->Contains(address)) return false;
    for (const Value& except : peer["ipBlock"]["except"].items())
      if (Ipv4Prefix::Parse(except.AsString())->Contains(address)) return false;
    return true;
  }
  if (other == nullptr) return false;
  const std::string ns = (*other)["metadata"]["namespace"].Str();
  bool of_namespace = !peer.Has("namespaceSelector") && ns == own_ns;
  for (const Value& object : input.namespaces) {
    if (peer.Has("namespaceSelector") && object["metadata"]["name"].AsString() == ns &&
        Selects(peer["namespaceSelector"], object["metadata"]["labels"]))
      of_namespace = true;
  }
  return of_namespace &&
         (!peer.Has("podSelector") || Selects(peer["podSelector"], (*other)["metadata"]["labels"]));
}

// `server`: the pod that is connected to, nullptr if that is none.
bool PortIs(const Value& port, const Packet& packet, const Value* server) {
  if (ParseProtocol(port["protocol"].AsString()) != packet.protocol) return false;
  if (!port.Has("port")) return true;
  if (!port["port"].IsString()) {
    const int64_t first = port["port"].AsInt();
    return first <= packet.port && packet.port <= port["endPort"].AsInt(first);
  }
  if (server == nullptr) return false;
  for (const Value& named : (*server)["spec"]["containers"].At(0)["ports"].items()) {
    if (named["name"] == port["port"] && named["containerPort"].AsInt() == packet.port &&
        ParseProtocol(named["protocol"].AsString()) == packet.protocol)
      return true;
  }
  return false;
}

bool RuleAllows(const PolicyInput& input, const Value& rule, const Value& pod, const Packet& packet,
                bool ingress) {
  const Ipv4 address = ingress ? packet.from : packet.to;
  std::vector<const Value*> others = {nullptr};
  for (const auto* pods : {&input.local_pods, &input.other_pods}) {
    for (const Value& other : *pods)
      if (other["status"]["podIP"].AsString() == address.ToString()) others.push_back(&other);
  }
  const Value& peers = rule[ingress ? "from" : "to"];
  return std::ranges::any_of(others, [&](const Value* other) {
    const bool peer_ok =
        peers.empty() || std::ranges::any_of(peers.items(), [&](const Value& peer) {
          return PeerIs(input, pod["metadata"]["namespace"].Str(), peer, address, other);
        });
    const bool port_ok =
        rule["ports"].empty() || std::ranges::any_of(rule["ports"].items(), [&](const Value& port) {
          return PortIs(port, packet, ingress ? &pod : other);
        });
    return peer_ok && port_ok;
  });
}

bool OracleAllows(const PolicyInput& input, const Value& pod, const Packet& packet, bool ingress) {
  bool isolated = false;
  for (const Value& policy : input.policies) {
    const Value& spec = policy["spec"];
    if (!(pod["metadata"]["namespace"] == policy["metadata"]["namespace"])) continue;
    if (!Selects(spec["podSelector"], pod["metadata"]["labels"])) continue;
    bool of_type = false;
    for (const Value& type : spec["policyTypes"].items())
      of_type = of_type || type.AsString() == (ingress ? "Ingress" : "Egress");
    if (!of_type) continue;
    isolated = true;
    for (const Value& rule : spec[ingress ? "ingress" : "egress"].items())
      if (RuleAllows(input, rule, pod, packet, ingress)) return true;
  }
  return !isolated;
}

bool OraclePasses(const PolicyInput& input, const Packet& packet) {
  for (const Value& pod : input.local_pods) {
    const auto address = Ipv4::Parse(pod["status"]["podIP"].AsString());
    if (address == packet.from && !OracleAllows(input, pod, packet, false)) return false;
    if (address == packet.to && !OracleAllows(input, pod, packet, true)) return false;
  }
  return true;
}

class RandomCluster {
 public:
  explicit RandomCluster(uint64_t seed) : rng_(seed) {}

  PolicyInput Make() {
    PolicyInput input;
    for (const char* ns : {"a", "b", "c"}) input.namespaces.push_back(NamespaceOf(ns, Labels()));
    for (int last = 2; last < 12; ++last)
      (Below(2) == 0 ? input.local_pods : input.other_pods)
          .push_back(PodOf(Namespace(), Labels(), Below(12) == 0 ? 2 : last, Ports()));
    for (int i = Below(5); i > 0; --i) input.policies.push_back(PolicyOf(Namespace(), Spec()));
    return input;
  }
  Packet MakePacket() {
    const auto address = [&] {
      return Below(8) == 0 ? Ipv4{0xC0000200 + static_cast<uint32_t>(Below(3))}
                           : Address(2 + Below(10));
    };
    return {address(), address(), static_cast<ServiceProtocol>(Below(3)),
            static_cast<uint16_t>(80 + Below(5))};
  }

 private:
  int Below(uint64_t bound) { return static_cast<int>(rng_.Below(bound)); }
  std::string Namespace() { return std::string(1, static_cast<char>('a' + Below(3))); }
  std::string Labels() {
    std::string out = "{";
    for (const char* key : {"x", "y"}) {
      if (Below(3) == 0) continue;
      out += std::string(out.size() > 1 ? "," : "") + "\"" + key + "\":\"" +
             std::to_string(Below(2)) + "\"";
    }
    return out + "}";
  }
  std::string Selector() {
    if (Below(4) == 0) return "{}";
    if (Below(2) == 0) return R"({"matchLabels":)" + Labels() + "}";
    const char* op[] = {"In", "NotIn", "Exists", "DoesNotExist"};
    const int which = Below(4);
    return std::string(R"({"matchExpressions":[{"key":"x","operator":")") + op[which] + "\"" +
           (which < 2 ? R"(,"values":["1"])" : "") + "}]}";
  }
  std::string Protocol() {
    const char* names[] = {"TCP", "UDP", "SCTP"};
    return names[Below(3)];
  }
  std::string Ports() {
    return R"([{"name":"one","protocol":")" + Protocol() + R"(","containerPort":)" +
           std::to_string(80 + Below(3)) + R"(},{"name":"two","containerPort":)" +
           std::to_string(80 + Below(5)) + "}]";
  }
  std::string Port() {
    std::string out = R"({"protocol":")" + Protocol() + "\"";
    const int first = 80 + Below(5);
    if (Below(3) == 0) {
      out += std::string(R"(,"port":")") + (Below(2) == 0 ? "one" : "two") + "\"";
    } else if (Below(4) != 0) {
      out += R"(,"port":)" + std::to_string(first);
      if (Below(3) == 0) out += R"(,"endPort":)" + std::to_string(first + Below(4));
    }
    return out + "}";
  }
  std::string Peer() {
    if (Below(3) == 0) {
      return std::string(R"({"ipBlock":{"cidr":")") +
             (Below(3) == 0 ? "0.0.0.0/0" : "10.42.0.0/29") + "\"" +
             (Below(2) == 0 ? R"(,"except":["10.42.0.4/31","10.42.0.3/32"])" : "") + "}}";
    }
    const int which = Below(3);
    std::string out = "{";
    if (which != 0) out += R"("podSelector":)" + Selector();
    if (which != 1)
      out += std::string(which == 2 ? "," : "") + R"("namespaceSelector":)" + Selector();
    return out + "}";
  }
  template <class Item>
  std::string List(int most, Item item) {
    std::string out = "[";
    for (int i = Below(static_cast<uint64_t>(most) + 1); i > 0; --i)
      out += std::string(out.size() > 1 ? "," : "") + item();
    return out + "]";
  }
  std::string Rules(const std::string& peers) {
    return List(3, [&] {
      return R"({"ports":)" + List(2, [&] { return Port(); }) + ",\"" + peers +
             "\":" + List(2, [&] { return Peer(); }) + "}";
    });
  }
  std::string Spec() {
    const char* types[] = {R"(["Ingress"])", R"(["Egress"])", R"(["Ingress","Egress"])"};
    return R"({"podSelector":)" + Selector() + R"(,"policyTypes":)" + types[Below(3)] +
           R"(,"ingress":)" + Rules("from") + R"(,"egress":)" + Rules("to") + "}";
  }

  Rng rng_;
};

TEST(PolicyPlanner, AnyPoliciesAllowWhatTheOracleAllows) {
  int passed = 0, dropped = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    RandomCluster cluster(seed);
    const PolicyInput input = cluster.Make();
    const PolicyTable table = PlanPolicies(input);
    const auto again = ParsePolicyTable(ToText(table));
    ASSERT_TRUE(again) << "seed " << seed << " " << again.error().ToString();
    ASSERT_EQ(*again, table) << "seed " << seed;
    for (int i = 0; i < 40; ++i) {
      const Packet packet = cluster.MakePacket();
      const bool want = OraclePasses(input, packet);
      ++(want ? passed : dropped);
      ASSERT_EQ(Passes(table, packet), want)
          << "seed " << seed << ": " << packet.from.ToString() << " to " << packet.to.ToString()
          << " port " << packet.port << "\n"
          << ToText(table);
    }
  }
  EXPECT_GT(passed, 10000);
  EXPECT_GT(dropped, 5000);
}

// Far from what a loop thread would notice, though it is planned on the pool.
TEST(PolicyPlanner, AThousandPodsAndAHundredPoliciesAreQuick) {
  PolicyInput input;
  for (int n = 0; n < 10; ++n)
    input.namespaces.push_back(NamespaceOf("n" + std::to_string(n), R"({"team":"t"})"));
  for (int i = 0; i < 1000; ++i) {
    (i < 110 ? input.local_pods : input.other_pods)
        .push_back(PodOf("n" + std::to_string(i % 10),
                         R"({"app":"a)" + std::to_string(i % 20) + R"("})", i + 2));
  }
  for (int i = 0; i < 100; ++i) {
    input.policies.push_back(
        PolicyOf("n" + std::to_string(i % 10),
                 R"({"podSelector":{},"policyTypes":["Ingress","Egress"],"ingress":[{"from":
                    [{"namespaceSelector":{},"podSelector":{"matchLabels":{"app":"a)" +
                     std::to_string(i % 20) + R"("}}}],"ports":[{"port":80}]}],"egress":[{}]})"));
  }
  const Duration begin = RealClock().Monotonic();
  const PolicyTable table = PlanPolicies(input);
  EXPECT_LT(RealClock().Monotonic() - begin, seconds(1));
  EXPECT_EQ(table.ingress.size(), 110U);
}

}  // namespace
}  // namespace muster::agent
