// src/apiserver/reply.h
//
// How handlers answer with an entry of the store.
//
// Thread: the loop thread.

#pragma once

#include "apiserver/answer.h"
#include "apiserver/call.h"
#include "apiserver/core.h"
#include "base/status.h"
#include "store/store.h"

namespace muster::apiserver {

// What the client accepts; also tells the call how to write it.
Result<AnswerFormat> FormatOf(Call& call, const ResourcePtr& resource);
// The object in that form, or the error.
void ReplyEntry(Core& core, Call& call, const AnswerFormat& format, int code,
                const Result<store::EntryPtr>& entry);

}  // namespace muster::apiserver
