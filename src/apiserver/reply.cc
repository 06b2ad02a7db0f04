#include "apiserver/reply.h"

namespace muster::apiserver {

Result<AnswerFormat> FormatOf(Call& call, const ResourcePtr& resource) {
  ASSIGN_OR_RETURN(
      AnswerFormat format,
      MakeFormat(call.Spoken(resource->kind), call.request().headers.Get("Accept"), call.info()));
  call.set_encoding(format.encoding);
  return format;
}

void ReplyEntry(Core& core, Call& call, const AnswerFormat& format, int code,
                const Result<store::EntryPtr>& entry) {
  if (!entry) return call.Fail(entry.error());
  if (format.form == AnswerForm::kObject && call.writer()->TakesValues()) {
    return call.Reply(code, core.trees.Of(*format.kind, **entry));
  }
  std::string body;
  const Status written = AppendObject(body, format, **entry, core.loop.Now());
  if (!written.ok()) return call.Fail(written);
  call.Reply(code, std::move(body));
}

}  // namespace muster::apiserver
