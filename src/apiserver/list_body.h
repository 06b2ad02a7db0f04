// src/apiserver/list_body.h
//
// ListBody: the body of a LIST, rendered piece by piece from stored bytes by whoever pulls it (an
// I/O thread). As protobuf it begins with how long it is: then the items are encoded once to be
// measured, and most of them a second time to be sent, so that it never exists as a whole.
//
// Life cycle: made on the loop with the entries of one revision; holds them until it is pulled or
//             dropped.
// Thread:     any one at a time.

#pragma once

#include <string>
#include <vector>

#include "apiserver/answer.h"
#include "apiserver/call.h"
#include "apiserver/core.h"
#include "apiserver/selection.h"
#include "net/http.h"
#include "store/store.h"

namespace muster::apiserver {

// What was encoded to be measured is kept up to this size: a short list is encoded once.
inline constexpr size_t kKeptListBytes = 256 * 1024;
// A longer list in protobuf is measured on the pool.
inline constexpr size_t kMeasuredOnLoop = 100;  // objects

class ListBody : public net::BodySource {
 public:
  // `filter` may be nullptr: everything is sent.
  ListBody(AnswerFormat format, std::vector<store::EntryPtr> entries, ListFacts facts,
           SelectionPtr filter, Time now);
  // Finds out how long it is. REQUIRES: protobuf, nothing is pulled yet; must have succeeded before
  // something is.
  Status Measure();
  bool Next(size_t want, std::string& out) override;
  const AnswerFormat& format() const { return format_; }
  size_t objects() const { return entries_.size(); }

 private:
  enum class Part : uint8_t { kHead, kItems, kDone };

  bool protobuf() const { return format_.encoding == Encoding::kProtobuf; }
  bool Sends(const store::Entry& entry) const;
  void AppendHead(std::string& out);
  void AppendItem(std::string& out, const store::Entry& entry);

  AnswerFormat format_;
  std::vector<store::EntryPtr> entries_;
  ListFacts facts_;
  SelectionPtr filter_;
  Time now_;
  Part part_ = Part::kHead;
  size_t next_ = 0;
  bool first_ = true;
  size_t items_bytes_ = 0;  // of all items in protobuf
  std::string kept_;        // the items before `next_`, not pulled yet
};

// Streams it; YAML is rendered whole.
void ReplyList(Core& core, const CallPtr& call, ListBody body);

}  // namespace muster::apiserver
