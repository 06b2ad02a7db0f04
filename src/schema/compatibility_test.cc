#include "schema/compatibility.h"

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace muster::schema {
namespace {

TEST(CompatibilityTest, TheCommittedDocumentIsCurrent) {
  std::ifstream in("docs/compatibility.md", std::ios::binary);
  if (!in) GTEST_SKIP() << "docs/compatibility.md is not here: run from the project's root";
  std::stringstream committed;
  committed << in.rdbuf();
  EXPECT_EQ(committed.str(), CompatibilityMarkdown())
      << "run tools/schema/compatibility and commit the result";
}

TEST(CompatibilityTest, RestrictionsAreNamedAndActedOnFieldsAreNot) {
  const std::string text = CompatibilityMarkdown();
  EXPECT_NE(text.find("| `spec.securityContext.seLinuxOptions` | warning; the pod fails"),
            std::string::npos);
  EXPECT_NE(text.find("| `spec.containers[].stdin` | warning; not acted on"), std::string::npos);
  EXPECT_EQ(text.find("| `spec.containers[].command` |"), std::string::npos);
  EXPECT_EQ(text.find("spec.initContainers[].stdin"), std::string::npos);
}

TEST(CompatibilityTest, PartsOfPodsAreToldOfOnce) {
  const std::string text = CompatibilityMarkdown();
  const std::string stdin_row = "| `spec.containers[].stdin` |";
  ASSERT_NE(text.find(stdin_row), std::string::npos);
  EXPECT_EQ(text.find(stdin_row), text.rfind(stdin_row));
  EXPECT_NE(text.find("\n\nAs in the table of Pod: `spec.containers[]`, `spec.volumes[]`.\n"),
            std::string::npos);
  EXPECT_EQ(text.find("| `spec.predictor.securityContext."), std::string::npos);
  // A kind's own fields stay.
  EXPECT_NE(text.find("| `spec.replicatedJobs[].template.spec.scheduling` |"), std::string::npos);
}

}  // namespace
}  // namespace muster::schema
