#include "apiserver/list_body.h"

#include <utility>

#include "apiserver/protobuf_answer.h"
#include "base/check.h"
#include "loop/loop.h"
#include "schema/protobuf_codec.h"

namespace muster::apiserver {
namespace {

constexpr size_t kWholeBodyBytes =
    64 * 1024;  // a list up to this size is sent in one piece, with its length

void Stream(Call& call, std::string_view content_type, ListBody body) {
  net::Response response;
  response.headers.Add("Content-Type", std::string(content_type));
  response.source = std::make_unique<ListBody>(std::move(body));
  call.Send(std::move(response));
}

void StreamProtobuf(Core& core, const CallPtr& call, ListBody body) {
  if (core.options.pool == nullptr || body.objects() <= kMeasuredOnLoop) {
    if (const Status status = body.Measure(); !status.ok()) return call->Fail(status);
    return Stream(*call, schema::kProtobufMediaType, std::move(body));
  }
  auto shared = std::make_shared<ListBody>(std::move(body));
  auto status = std::make_shared<Status>(Status::Ok());
  core.options.pool->Run([shared, status] { *status = shared->Measure(); }, core.loop,
                         core.Guarded([call, shared, status] {
                           if (!status->ok()) return call->Fail(*status);
                           Stream(*call, schema::kProtobufMediaType, std::move(*shared));
                         }));
}

}  // namespace

ListBody::ListBody(AnswerFormat format, std::vector<store::EntryPtr> entries, ListFacts facts,
                   SelectionPtr filter, Time now)
    : format_(std::move(format)),
      entries_(std::move(entries)),
      facts_(std::move(facts)),
      filter_(std::move(filter)),
      now_(now) {}

bool ListBody::Sends(const store::Entry& entry) const {
  return filter_ == nullptr || filter_->Matches(entry);
}

Status ListBody::Measure() {
  std::string item;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (!Sends(*entries_[i])) continue;
    item.clear();
    RETURN_IF_ERROR(AppendProtobufItem(item, format_, *entries_[i]));
    items_bytes_ += item.size();
    // The kept ones are the first ones, without a gap.
    if (items_bytes_ > kKeptListBytes) continue;
    kept_ += item;
    next_ = i + 1;
  }
  return Status::Ok();
}

void ListBody::AppendHead(std::string& out) {
  if (!protobuf()) return AppendListHead(out, format_, facts_);
  out += ProtobufListHead(format_, facts_, items_bytes_);
  out += kept_;
  kept_ = std::string();
}

void ListBody::AppendItem(std::string& out, const store::Entry& entry) {
  if (protobuf()) {
    const Status status = AppendProtobufItem(out, format_, entry);
    CHECK_MSG(status.ok(), "what was measured cannot be encoded again");
    return;
  }
  if (!std::exchange(first_, false)) out += ',';
  AppendListItem(out, format_, entry, now_);
}

bool ListBody::Next(size_t want, std::string& out) {
  const size_t end = out.size() + want;
  if (part_ == Part::kHead) {
    AppendHead(out);
    part_ = Part::kItems;
  }
  while (part_ == Part::kItems && out.size() < end) {
    if (next_ == entries_.size()) {
      if (protobuf()) {
        out += schema::kProtobufEnvelopeTail;
      } else {
        AppendListTail(out);
        out += '\n';
      }
      part_ = Part::kDone;
      break;
    }
    const store::EntryPtr entry = std::move(entries_[next_++]);
    if (Sends(*entry)) AppendItem(out, *entry);
  }
  return part_ != Part::kDone;
}

void ReplyList(Core& core, const CallPtr& call, ListBody body) {
  switch (body.format().encoding) {
    case Encoding::kYaml: {
      std::string whole;
      while (body.Next(kWholeBodyBytes, whole)) {
      }
      return call->Reply(200, std::move(whole));
    }
    case Encoding::kProtobuf:
      return StreamProtobuf(core, call, std::move(body));
    case Encoding::kJson:
      return Stream(*call, "application/json", std::move(body));
  }
}

}  // namespace muster::apiserver
