#include "apiserver/list_body.h"

namespace muster::apiserver {
namespace {

constexpr size_t kWholeBodyBytes =
    64 * 1024;  // a list up to this size is sent in one piece, with its length

}  // namespace

ListBody::ListBody(AnswerFormat format, std::vector<store::EntryPtr> entries, ListFacts facts,
                   SelectionPtr filter, Time now)
    : format_(std::move(format)),
      entries_(std::move(entries)),
      facts_(std::move(facts)),
      filter_(std::move(filter)),
      now_(now) {}

bool ListBody::Next(size_t want, std::string& out) {
  const size_t end = out.size() + want;
  if (part_ == Part::kHead) {
    AppendListHead(out, format_, facts_);
    part_ = Part::kItems;
  }
  while (part_ == Part::kItems && out.size() < end) {
    if (next_ == entries_.size()) {
      AppendListTail(out);
      out += '\n';
      part_ = Part::kDone;
      break;
    }
    store::EntryPtr entry = std::move(entries_[next_++]);
    if (filter_ != nullptr && !filter_->Matches(*entry)) continue;
    if (!std::exchange(first_, false)) out += ',';
    AppendListItem(out, format_, *entry, now_);
  }
  return part_ != Part::kDone;
}

void ReplyList(Call& call, ListBody body) {
  if (body.format().yaml) {
    std::string whole;
    while (body.Next(kWholeBodyBytes, whole)) {
    }
    return call.Reply(200, std::move(whole));
  }
  net::Response response;
  response.headers.Add("Content-Type", "application/json");
  response.source = std::make_unique<ListBody>(std::move(body));
  call.Send(std::move(response));
}

}  // namespace muster::apiserver
