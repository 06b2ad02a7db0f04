// src/apiserver/admission/fake_webhooks.h
//
// FakeWebhooks: a WebhookClient that answers by a table, for tests. It keeps what it was asked.
//
// Thread: the loop thread.

#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/admission/webhook_client.h"
#include "base/strings.h"
#include "json/parse.h"
#include "json/write.h"
#include "loop/loop.h"

namespace muster::apiserver {

class FakeWebhooks final : public WebhookClient {
 public:
  struct Question {
    WebhookTarget target;
    json::Value review;
    Duration timeout{};
    const json::Value& request() const { return review["request"]; }
  };
  struct Behaviour {
    std::function<json::Value(const json::Value& request)> answer;  // AdmissionResponse
    Duration delay{};
    Status failure;        // instead of an answer
    int status = 200;      // of HTTP
    std::string raw = {};  // a body instead of the answer
  };

  void Post(const WebhookTarget& target, std::string body, Duration timeout,
            Function<void(Result<net::Response>)> done) override {
    questions.push_back({target, json::Parse(body).value_or(json::Value()), timeout});
    const Question question = questions.back();
    const Behaviour behaviour = by_path[target.path.substr(0, target.path.find('?'))];
    const bool late = behaviour.delay > timeout;
    loop->After(late ? timeout : behaviour.delay,
                [behaviour, question, late, done = std::move(done)]() mutable {
                  if (late) return done(Error(Reason::kTimeout, "no answer"));
                  if (!behaviour.failure.ok()) return done(Error(behaviour.failure));
                  done(Answer(behaviour, question));
                });
  }

  // An answer that lets the request pass with `patch` (RFC 6902 as text; "" for none).
  static json::Value Allow(std::string_view patch = {}) {
    json::Value response = json::Obj({{"allowed", true}});
    if (patch.empty()) return response;
    return response.Set("patchType", "JSONPatch").Set("patch", Base64Encode(patch));
  }
  static json::Value Deny(json::Value status = nullptr) {
    json::Value response = json::Obj({{"allowed", false}});
    return status.IsNull() ? response : response.Set("status", std::move(status));
  }

  // The paths that were asked, in order: "/a /b".
  std::string Paths() const {
    std::vector<std::string> paths;
    for (const Question& question : questions)
      paths.push_back(question.target.path.substr(0, question.target.path.find('?')));
    return Join(paths, " ");
  }

  Loop* loop = nullptr;
  std::map<std::string, Behaviour> by_path;
  std::vector<Question> questions;

 private:
  static net::Response Answer(const Behaviour& behaviour, const Question& question) {
    net::Response response;
    response.status = behaviour.status;
    json::Value answer = behaviour.answer ? behaviour.answer(question.request()) : Allow();
    if (!answer.Has("uid")) answer = answer.Set("uid", question.request()["uid"]);
    response.body = behaviour.raw.empty()
                        ? json::Write(json::Obj({{"apiVersion", question.review["apiVersion"]},
                                                 {"kind", "AdmissionReview"},
                                                 {"response", answer}}))
                        : behaviour.raw;
    return response;
  }
};

}  // namespace muster::apiserver
