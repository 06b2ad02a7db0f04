// src/apiserver/admission/admission_review.h
//
// AdmissionReview (admission.k8s.io v1, v1beta1): the question that a webhook gets and the answer
// that it gives. Source: k8s.io/apiserver pkg/admission/plugin/webhook/{request,errors}.
//
// Thread: any (pure functions).

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/admission/admission_request.h"
#include "base/status.h"
#include "json/value.h"

namespace muster::apiserver {

// An object that is stored, in the version of `kind`; null stays null.
json::Value AsSeen(const schema::Kind& kind, const json::Value& object);

// `seen`: the version of the resource that the webhook's rules name; the request's own, or an
// equivalent one.
json::Value MakeReview(const AdmissionRequest& request, const schema::Kind& seen,
                       std::string_view review_version, std::string_view uid);

struct ReviewAnswer {
  bool allowed = false;
  json::Value patch;   // RFC 6902; null for none
  json::Value result;  // the Status of a denial; null for none
  std::vector<std::string> warnings;
};

// The answer to the review `uid`; the message of an error is upstream's, without the webhook.
Result<ReviewAnswer> ReadReview(std::string_view body, std::string_view review_version,
                                std::string_view uid, bool mutating);

// What a client is told when a webhook says no. Code and reason are the webhook's, which no Reason
// may have: the Status comes near.
struct Denial {
  Status status;
  int code = 0;
  std::string reason;  // "": none
};
Denial MakeDenial(std::string_view webhook, const json::Value& result);

}  // namespace muster::apiserver
