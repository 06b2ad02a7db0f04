#include "agent/pod_workers/environment.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/parse.h"

namespace muster::agent {
namespace {

// The table of the upstream package's own test, as facts: input -> output.
TEST(Expansion, IsKubernetes) {
  const EnvironmentMap variables = {
      {"VAR_A", "A"}, {"VAR_B", "B"}, {"VAR_REF", "$(VAR_A)"}, {"VAR_EMPTY", ""}};
  const std::pair<const char*, const char*> rows[] = {
      {"$(VAR_A)", "A"},
      {"___$(VAR_B)___", "___B___"},
      {"$(VAR_A)$(VAR_B)", "AB"},
      {"$(VAR_REF)", "$(VAR_A)"},
      {"foo$(VAR_EMPTY)bar", "foobar"},
      {"$(NOT_THERE)", "$(NOT_THERE)"},
      {"$$(VAR_A)", "$(VAR_A)"},
      {"$$$(VAR_A)", "$A"},
      {"$$$$(VAR_A)", "$$(VAR_A)"},
      {"$VAR_A", "$VAR_A"},
      {"$(VAR_A", "$(VAR_A"},
      {"$", "$"},
      {"a$", "a$"},
      {"$$", "$"},
      {"", ""},
      {"$(", "$("},
      {"\n$(VAR_A)", "\nA"},
  };
  for (const auto& [in, out] : rows) EXPECT_EQ(Expand(in, variables), out) << in;
}

TEST(Environment, ServicesBecomeVariables) {
  const json::Value web = *json::Parse(
      R"j({"metadata":{"name":"my-web","namespace":"d"},"spec":{"clusterIP":"10.43.0.9",
          "ports":[{"name":"http","port":80,"protocol":"TCP"},{"port":53,)j"
      R"j("protocol":"UDP"}]}})j");
  const json::Value api =
      *json::Parse(R"j({"metadata":{"name":"kubernetes","namespace":"default"},)j"
                   R"j("spec":{"clusterIP":"10.43.0.1","ports":[{"name":"https","port":443}]}})j");
  const json::Value headless =
      *json::Parse(R"j({"metadata":{"name":"h","namespace":"d"},"spec":{"clusterIP":"None",)j"
                   R"j("ports":[{"port":1}]}})j");
  const EnvironmentMap all = ServiceEnvironment({web, api, headless}, "d", true);
  EXPECT_EQ(all.at("MY_WEB_SERVICE_HOST"), "10.43.0.9");
  EXPECT_EQ(all.at("MY_WEB_SERVICE_PORT"), "80");
  EXPECT_EQ(all.at("MY_WEB_SERVICE_PORT_HTTP"), "80");
  EXPECT_EQ(all.at("MY_WEB_PORT"), "tcp://10.43.0.9:80");
  EXPECT_EQ(all.at("MY_WEB_PORT_53_UDP_ADDR"), "10.43.0.9");
  EXPECT_EQ(all.at("MY_WEB_PORT_53_UDP_PROTO"), "udp");
  EXPECT_EQ(all.at("KUBERNETES_SERVICE_HOST"), "10.43.0.1");
  EXPECT_FALSE(all.contains("H_SERVICE_HOST"));
  const EnvironmentMap some = ServiceEnvironment({web, api}, "d", false);
  EXPECT_FALSE(some.contains("MY_WEB_SERVICE_HOST"));
  EXPECT_TRUE(some.contains("KUBERNETES_SERVICE_PORT"));
}

struct Case {
  json::Value pod =
      *json::Parse(R"j({"metadata":{"name":"p","namespace":"d","labels":{"a/b":"x"}},)j"
                   R"j("spec":{"nodeName":"n"}})j");
  PodInputs inputs;
  PodFacts facts = {"10.0.0.2", "1.2.3.4", "n", json::Obj({{"memory", "1Gi"}, {"cpu", "4"}})};

  Result<EnvironmentMap> Of(const std::string& container) {
    return ContainerEnvironment(pod, *json::Parse(container), inputs, facts);
  }
};

TEST(Environment, TakesValuesFromEverywhere) {
  Case c;
  c.inputs.config_maps["cm"] = *json::Parse(R"j({"data":{"k":"v","K2":"v2"}})j");
  c.inputs.secrets["s"] = *json::Parse(R"j({"data":{"k":"c2VjcmV0"}})j");
  const auto env = c.Of(R"j({"name":"c","resources":{"limits":{"cpu":"1500m"}},
      "envFrom":[{"prefix":"X_","configMapRef":{"name":"cm"}},{"secretRef":{"name":"none",)j"
                        R"j("optional":true}}],
      "env":[{"name":"A","value":"1"},{"name":"B","value":"$(A)$(X_k)$(LATER)"},)j"
                        R"j({"name":"LATER","value":"z"},
             {"name":"S","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}},
             {"name":"L","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['a/b']"}}},
             {"name":"IP","valueFrom":{"fieldRef":{"fieldPath":"status.podIP"}}},
             {"name":"CPU","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu"}}},
             {"name":"MEM","valueFrom":{"resourceFieldRef":{"resource":"limits.memory",)j"
                        R"j("divisor":"1Mi"}}},
             {"name":"O","valueFrom":{"configMapKeyRef":{"name":"cm","key":"no",)j"
                        R"j("optional":true}}}]})j");
  ASSERT_TRUE(env.has_value()) << env.error().message();
  EXPECT_EQ(env->at("X_K2"), "v2");
  EXPECT_EQ(env->at("B"), "1v$(LATER)") << "only what is defined before";
  EXPECT_EQ(env->at("S"), "secret");
  EXPECT_EQ(env->at("L"), "x");
  EXPECT_EQ(env->at("IP"), "10.0.0.2");
  EXPECT_EQ(env->at("CPU"), "2") << "rounded up to whole cores";
  EXPECT_EQ(env->at("MEM"), "1024") << "without a limit the node's memory";
  EXPECT_FALSE(env->contains("O"));
}

TEST(Environment, SaysWhatIsMissing) {
  Case c;
  c.inputs.config_maps["cm"] = *json::Parse(R"j({"data":{}})j");
  EXPECT_EQ(c.Of(R"j({"envFrom":[{"configMapRef":{"name":"x"}}]})j").error().message(),
            "configmap \"x\" not found");
  EXPECT_EQ(c.Of(R"j({"env":[{"name":"A","valueFrom":{"configMapKeyRef":{"name":"cm",)j"
                 R"j("key":"k"}}}]})j")
                .error()
                .message(),
            "couldn't find key k in ConfigMap d/cm");
  EXPECT_FALSE(c.Of(R"j({"env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"spec.x"}}}]})j")
                   .has_value());
}

TEST(Environment, EveryContainerHasPathHostNameAndHome) {
  const auto plain = FinishEnvironment({}, "web-0", {}, "/root");
  EXPECT_EQ(plain, (std::vector<std::string>{"HOME=/root", "HOSTNAME=web-0",
                                             "PATH=" + std::string(kDefaultPath)}));
  const auto own = FinishEnvironment({{"PATH", "/venv/bin"}}, "web-0", {}, "/root");
  EXPECT_EQ(own.back(), "PATH=/venv/bin");
}

TEST(Environment, ThePodsVariablesComeBeforeTheImages) {
  ImageConfig image;
  image.environment = {"PATH=/opt/bin", "A=image", "B=image", "EMPTY=", "=x"};
  const auto all = FinishEnvironment({{"A", "pod"}}, "web-0", image, "");
  EXPECT_EQ(all, (std::vector<std::string>{"A=pod", "B=image", "EMPTY=", "HOSTNAME=web-0",
                                           "PATH=/opt/bin"}));
}

// The table in Kubernetes' documentation of command and args.
TEST(Environment, CommandReplacesTheEntrypointAndArgsReplaceTheCmd) {
  const EnvironmentMap env = {{"RANK", "3"}};
  ImageConfig image;
  image.entrypoint = {"/ep-1"};
  image.cmd = {"foo", "$(RANK)"};
  const auto of = [&](const char* container, const ImageConfig& config) {
    return Join(ContainerArguments(*json::Parse(container), env, config), " ");
  };
  EXPECT_EQ(of("{}", image), "/ep-1 foo $(RANK)");
  EXPECT_EQ(of(R"j({"command":["/ep-2"]})j", image), "/ep-2");
  EXPECT_EQ(of(R"j({"args":["zoo","$(RANK)"]})j", image), "/ep-1 zoo 3");
  EXPECT_EQ(of(R"j({"command":["/ep-2","$(RANK)"],"args":["--x=$(NO)"]})j", image),
            "/ep-2 3 --x=$(NO)");
  EXPECT_EQ(of(R"j({"args":["x"]})j", {}), "x");
  EXPECT_EQ(of("{}", {}), "");
}

TEST(PodInputs, FindsEveryNamedObject) {
  const NeededObjects needed = FindNeededObjects(*json::Parse(
      R"j({"spec":{"initContainers":[{"env":[{"valueFrom":{"configMapKeyRef":{"name":"a"}}}]}],
          "containers":[{"envFrom":[{"secretRef":{"name":"b"}}]}],
          "volumes":[{"configMap":{"name":"c"}},{"secret":{"secretName":"d"}},
                     {"projected":{"sources":[{"configMap":{"name":"e"}},)j"
      R"j({"secret":{"name":"f"}},{"serviceAccountToken":{"path":"t","audience":"x"}}]}}]}})j"));
  EXPECT_EQ(needed.config_maps, (std::set<std::string>{"a", "c", "e"}));
  EXPECT_EQ(needed.secrets, (std::set<std::string>{"b", "d", "f"}));
  EXPECT_EQ(needed.tokens, (std::set<TokenNeed>{{"x", 3600}}));
}

}  // namespace
}  // namespace muster::agent
