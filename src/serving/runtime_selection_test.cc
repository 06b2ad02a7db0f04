#include "serving/runtime_selection.h"

#include <gtest/gtest.h>

#include "serving/test_services.h"

namespace muster::serving {
namespace {

using json::Value;

// format: further fields of its entry, "autoSelect: true, priority: 2".
Value Runtime(std::string_view name, std::string_view format, std::string_view spec = "") {
  return Yaml(fmt::format(
      "{{metadata: {{name: {}}}, spec: {{supportedModelFormats: [{{name: sklearn{}{}}}]{}{}}}}}",
      name, format.empty() ? "" : ", ", format, spec.empty() ? "" : ", ", spec));
}

std::string NameOf(const RuntimeChoice& choice) {
  return choice.runtime.IsNull() ? choice.reason : choice.runtime["metadata"]["name"].Str();
}

std::string Choose(std::string_view model, const std::vector<Value>& of_namespace,
                   const std::vector<Value>& of_cluster) {
  return NameOf(ChooseRuntime(
      Yaml(fmt::format("{{modelFormat: {{name: sklearn}}{}{}}}", model.empty() ? "" : ", ", model)),
      of_namespace, of_cluster));
}

TEST(RuntimeSelection, TakesTheNamespacesThenTheHighestPriority) {
  const Value low = Runtime("low", "autoSelect: true, priority: 1");
  const Value high = Runtime("high", "autoSelect: true, priority: 2");
  const Value manual = Runtime("manual", "priority: 9");
  EXPECT_EQ(Choose("", {}, {low, high, manual}), "high");
  EXPECT_EQ(Choose("", {low}, {high}), "low");
  EXPECT_EQ(Choose("", {manual}, {}), kNoSupportingRuntime);
  const Value a = Runtime("a", "autoSelect: true"), b = Runtime("b", "autoSelect: true");
  EXPECT_EQ(Choose("", {}, {b, a}), "a");
  EXPECT_EQ(Choose("", {}, {a, b}), "a");
}

TEST(RuntimeSelection, LooksAtDisabledProtocolAndVersion) {
  const Value off = Runtime("off", "autoSelect: true", "disabled: true");
  const Value mesh = Runtime("mesh", "autoSelect: true", "multiModel: true");
  const Value v2 = Runtime("v2", "autoSelect: true, version: '1'", "protocolVersions: [v2]");
  EXPECT_EQ(Choose("", {off, mesh, v2}, {}), kNoSupportingRuntime);
  EXPECT_EQ(Choose("protocolVersion: v2", {off, mesh, v2}, {}), "v2");
  const auto version = [&](std::string_view text) {
    return NameOf(ChooseRuntime(
        Yaml(fmt::format("{{modelFormat: {{name: sklearn, version: '{}'}}, protocolVersion: v2}}",
                         text)),
        {v2}, {}));
  };
  EXPECT_EQ(version("1.3"), "v2");
  EXPECT_EQ(version("1"), "v2");
  EXPECT_EQ(version("10"), kNoSupportingRuntime);
}

TEST(RuntimeSelection, TakesTheOneThatIsNamedOrSaysWhyNot) {
  const Value manual = Runtime("manual", "");
  EXPECT_EQ(Choose("runtime: manual", {}, {manual}), "manual");
  EXPECT_EQ(Choose("runtime: other", {}, {manual}), kRuntimeNotRecognized);
  EXPECT_EQ(Choose("runtime: manual", {Runtime("manual", "", "disabled: true")}, {manual}),
            kRuntimeDisabled);
  EXPECT_EQ(Choose("runtime: manual, protocolVersion: v2",
                   {Runtime("manual", "", "protocolVersions: [v1]")}, {}),
            kNoSupportingRuntime);
}

}  // namespace
}  // namespace muster::serving
