// src/apiserver/aggregation/fake_extensions.h
//
// FakeExtensions: an ExtensionClient whose servers answer when a test says so. It keeps what it was
// asked.
//
// Thread: the loop thread.

#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/aggregation/extension_client.h"

namespace muster::apiserver {

class FakeExtensions final : public ExtensionClient {
 public:
  struct Question {
    ExtensionTarget target;
    net::Request request;
    net::ClientStreamCallbacks callbacks;
    bool open = true;  // nobody let go of it yet

    void Head(int status, net::Headers headers = {}) { callbacks.on_head(status, headers); }
    void Data(std::string_view bytes) { callbacks.on_data(bytes); }
    void End(Status status = Status::Ok()) { callbacks.on_end(std::move(status)); }
    void Answer(int status, std::string_view body, net::Headers headers = {}) {
      Head(status, std::move(headers));
      if (open && !body.empty()) Data(body);
      if (open) End();
    }
  };
  using QuestionPtr = std::shared_ptr<Question>;

  std::unique_ptr<net::ClientStream> Stream(const ExtensionTarget& target, net::Request request,
                                            net::ClientStreamCallbacks callbacks) override {
    auto question = std::make_shared<Question>();
    question->target = target;
    question->request = std::move(request);
    question->callbacks = std::move(callbacks);
    questions.push_back(question);
    return std::make_unique<Handle>(question);
  }

  // The oldest question that nobody took; nullptr if there is none.
  QuestionPtr Take() {
    if (questions.empty()) return nullptr;
    QuestionPtr question = std::move(questions.front());
    questions.pop_front();
    return question;
  }

  std::deque<QuestionPtr> questions;

 private:
  struct Handle final : net::ClientStream {
    explicit Handle(QuestionPtr asked) : question(std::move(asked)) {}
    ~Handle() override { question->open = false; }
    QuestionPtr question;
  };
};

}  // namespace muster::apiserver
