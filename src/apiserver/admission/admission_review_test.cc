#include "apiserver/admission/admission_review.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace muster::apiserver {
namespace {

std::string Body(const std::string& response, const std::string& version = "v1") {
  return R"({"apiVersion":"admission.k8s.io/)" + version +
         R"(","kind":"AdmissionReview","response":)" + response + "}";
}

std::string Objection(const std::string& body, bool mutating = true,
                      const std::string& version = "v1") {
  const Result<ReviewAnswer> answer = ReadReview(body, version, "u", mutating);
  return answer ? "" : answer.error().message();
}

TEST(AdmissionReviewTest, AnswersThatAreNone) {
  EXPECT_NE(Objection("no JSON"), "");
  EXPECT_EQ(Objection("{}"), "webhook response was absent");
  EXPECT_EQ(Objection(Body(R"({"uid":"other","allowed":true})")),
            R"(expected response.uid="u", got "other")");
  EXPECT_EQ(Objection(Body(R"({"uid":"u","allowed":true})", "v2")),
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got "
            "admission.k8s.io/v2, Kind=AdmissionReview");
  EXPECT_EQ(Objection(Body(R"({"uid":"u","allowed":true,"patch":"W10="})")),
            "webhook returned response.patch but not response.patchType");
  EXPECT_EQ(Objection(Body(R"({"uid":"u","allowed":true,"patchType":"JSONPatch"})")),
            "webhook returned response.patchType but not response.patch");
  EXPECT_EQ(Objection(Body(R"({"uid":"u","allowed":true,"patch":"W10=","patchType":"Merge"})")),
            R"(webhook returned invalid response.patchType of "Merge")");
  EXPECT_EQ(Objection(Body(R"({"uid":"u","patch":"W10=","patchType":"JSONPatch"})"), false),
            "validating webhook may not return response.patch");
  EXPECT_EQ(Objection(Body(R"({"uid":"u","patchType":"JSONPatch"})"), false),
            "validating webhook may not return response.patchType");
  for (const char* patch : {"!", "e30="}) {  // no base64; {}
    EXPECT_TRUE(
        Objection(Body(fmt::format(R"({{"uid":"u","patch":"{}","patchType":"JSONPatch"}})", patch)))
            .starts_with("received undecodable patch in webhook response: "))
        << patch;
  }
}

TEST(AdmissionReviewTest, TheOlderVersionIsTakenAsItIs) {
  const auto answer =
      ReadReview(Body(R"({"allowed":true,"patch":"W10="})", "v1beta1"), "v1beta1", "u", true);
  ASSERT_TRUE(answer.has_value()) << answer.error().message();
  EXPECT_TRUE(answer->allowed);
  EXPECT_TRUE(answer->patch.IsArray());
}

TEST(AdmissionReviewTest, ANullIsNoPatch) {
  const auto answer =
      ReadReview(Body(R"({"uid":"u","allowed":true,"patch":"bnVsbA==","patchType":"JSONPatch"})"),
                 "v1", "u", true);
  ASSERT_TRUE(answer.has_value()) << answer.error().message();
  EXPECT_TRUE(answer->patch.IsNull());
}

TEST(AdmissionReviewTest, Denials) {
  Denial denial = MakeDenial("a.b.c", nullptr);
  EXPECT_EQ(denial.status.message(),
            R"(admission webhook "a.b.c" denied the request without explanation)");
  EXPECT_EQ(denial.code, 400);
  EXPECT_EQ(denial.reason, "");

  denial = MakeDenial("a.b.c", json::Obj({{"message", "no"}, {"code", 403}}));
  EXPECT_EQ(denial.status.message(), R"(admission webhook "a.b.c" denied the request: no)");
  EXPECT_EQ(denial.code, 403);

  denial = MakeDenial("a.b.c", json::Obj({{"reason", "Odd"}, {"code", 200}}));
  EXPECT_EQ(denial.status.message(), R"(admission webhook "a.b.c" denied the request: Odd)");
  EXPECT_EQ(denial.code, 400);
  EXPECT_EQ(denial.reason, "Odd");

  denial = MakeDenial(
      "a.b.c",
      json::Obj(
          {{"code", 9999},
           {"details", json::Obj({{"causes", json::List({json::Obj({{"field", "spec.x"},
                                                                    {"message", "bad"}})})}})}}));
  EXPECT_EQ(denial.code, 400);
  ASSERT_EQ(denial.status.details().causes.size(), 1u);
  EXPECT_EQ(denial.status.details().causes[0].field, "spec.x");
}

}  // namespace
}  // namespace muster::apiserver
