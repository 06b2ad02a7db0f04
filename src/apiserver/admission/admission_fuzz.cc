// What webhooks answer: whatever comes, reading it ends; a denial has the code of an error; what a
// patch leaves is still of its kind, and conforms. The input is a patch in one line, then an
// answer.

#include "apiserver/admission/admission.h"
#include "apiserver/admission/admission_review.h"
#include "base/check.h"
#include "base/fuzz_test_support.h"
#include "json/parse.h"
#include "schema/conform.h"
#include "schema/registry.h"

namespace {

namespace json = muster::json;
using muster::apiserver::AdmissionRequest;

AdmissionRequest PodRequest() {
  AdmissionRequest request;
  request.kind = muster::schema::Registry::BuiltIn().Find("", "v1", "pods");
  request.object =
      *json::Parse(R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","labels":{"a":"b"}},)"
                   R"("spec":{"containers":[{"name":"c","image":"i"}]}})");
  return request;
}

}  // namespace

FUZZ_TARGET(admission, input) {
  muster::FuzzInput lines(input);
  const auto patch = json::Parse(lines.Line());
  const std::string body(lines.Rest());
  for (const char* version : {"v1", "v1beta1"}) {
    for (const bool mutating : {true, false}) {
      const auto answer = muster::apiserver::ReadReview(body, version, "u", mutating);
      if (!answer) continue;
      CHECK(answer->patch.IsNull() || (mutating && answer->patch.IsArray()));
      const auto denial = muster::apiserver::MakeDenial("w", answer->result);
      CHECK(!denial.status.ok() && denial.code >= 400 && denial.code < 600);
    }
  }
  if (!patch) return;
  const AdmissionRequest request = PodRequest();
  const auto changed = muster::apiserver::ApplyReviewPatch({}, request, *request.kind, *patch);
  if (!changed) return;
  CHECK((*changed)["kind"].AsString() == "Pod" && (*changed)["apiVersion"].AsString() == "v1");
  CHECK(muster::schema::Conform(*request.kind, *changed, nullptr).has_value());
}
