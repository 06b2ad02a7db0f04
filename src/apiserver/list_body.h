// src/apiserver/list_body.h
//
// ListBody: the body of a LIST, rendered piece by piece from stored bytes by whoever pulls it (an
// I/O thread).
//
// Life cycle: made on the loop with the entries of one revision; holds them until it is pulled or
//             dropped.
// Thread:     any one at a time.

#pragma once

#include <vector>

#include "apiserver/answer.h"
#include "apiserver/call.h"
#include "apiserver/selection.h"
#include "net/http.h"
#include "store/store.h"

namespace muster::apiserver {

class ListBody : public net::BodySource {
 public:
  // `filter` may be nullptr: everything is sent.
  ListBody(AnswerFormat format, std::vector<store::EntryPtr> entries, ListFacts facts,
           SelectionPtr filter, Time now);
  bool Next(size_t want, std::string& out) override;
  const AnswerFormat& format() const { return format_; }

 private:
  enum class Part : uint8_t { kHead, kItems, kDone };

  AnswerFormat format_;
  std::vector<store::EntryPtr> entries_;
  ListFacts facts_;
  SelectionPtr filter_;
  Time now_;
  Part part_ = Part::kHead;
  size_t next_ = 0;
  bool first_ = true;
};

// Streams it; YAML is rendered whole.
void ReplyList(Call& call, ListBody body);

}  // namespace muster::apiserver
