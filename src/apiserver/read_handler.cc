// GET on an object and on a collection.

#include "apiserver/errors.h"
#include "apiserver/handlers.h"
#include "apiserver/list_body.h"
#include "apiserver/list_parameters.h"
#include "apiserver/reply.h"
#include "apiserver/selection.h"
#include "apiserver/stored_object.h"
#include "json/write.h"

namespace muster::apiserver {
namespace {

// Entries looked at by one Range() while a limited LIST with selectors searches for matches.
constexpr size_t kSearchPage = 1000;

Status Get(Core& core, const CallPtr& call, const ResourcePtr& resource) {
  ASSIGN_OR_RETURN(AnswerFormat format, FormatOf(*call, resource));
  const std::string ns = resource->kind->namespaced ? call->info().ns : "";
  const store::EntryPtr entry = core.store.Get(ObjectKey(*resource->kind, ns, call->info().name));
  if (entry == nullptr) return NotFoundError(*resource->kind, call->info().name);
  ReplyEntry(core, *call, format, 200, entry);
  return Status::Ok();
}

struct Page {
  std::vector<store::EntryPtr> entries;
  ListFacts facts;
};

// A limited LIST with selectors: looks further until the limit is reached.
Result<Page> SearchPage(Core& core, const Selection& selection, ContinueToken from, size_t limit) {
  Page page;
  page.facts.revision = from.revision;
  for (size_t searched = 0; searched < kMaxSearchedEntries; searched += kSearchPage) {
    ASSIGN_OR_RETURN(store::RangeResult range,
                     core.store.Range(selection.prefix(), from.after, kSearchPage, from.revision));
    for (size_t i = 0; i < range.entries.size(); ++i) {
      from.after = range.entries[i]->key;
      if (!selection.Matches(*range.entries[i])) continue;
      page.entries.push_back(range.entries[i]);
      if (page.entries.size() < limit) continue;
      if (i + 1 < range.entries.size() || range.more)
        page.facts.continue_token = EncodeContinue(from);
      return page;
    }
    if (!range.more) return page;
  }
  page.facts.continue_token = EncodeContinue(from);
  return page;
}

Result<Page> LimitedPage(Core& core, const Selection& selection, ContinueToken from, size_t limit) {
  if (!selection.everything()) return SearchPage(core, selection, std::move(from), limit);
  Page page;
  ASSIGN_OR_RETURN(store::RangeResult range,
                   core.store.Range(selection.prefix(), from.after, limit, from.revision));
  page.entries = std::move(range.entries);
  page.facts.revision = from.revision;
  if (range.more) {
    page.facts.remaining = range.remaining;
    page.facts.continue_token = EncodeContinue({from.revision, page.entries.back()->key});
  }
  return page;
}

// At which revision, and from where. 0 means now.
Result<ContinueToken> StartOf(Core& core, const ListParameters& list, const Selection& selection) {
  const store::Revision committed = core.store.CommittedRevision();
  if (!list.continue_token.empty()) {
    ASSIGN_OR_RETURN(ContinueToken token, DecodeContinue(list.continue_token, selection.prefix()));
    if (token.revision == ContinueToken::kLatest) token.revision = committed;
    return token;
  }
  ContinueToken start{committed, ""};
  const store::Revision wanted = list.revision.value_or(0);
  if (wanted > committed) return Error(ResourceVersionTooLargeError(wanted, committed));
  // Without a match rule, a limit together with a revision means exactly that revision.
  const bool exact = list.match == RevisionMatch::kExact ||
                     (list.match == RevisionMatch::kUnset && list.limit > 0 && wanted > 0);
  if (exact) start.revision = wanted;
  return start;
}

// 410, with a token that goes on at the present state: the list is then not consistent, which the
// client may accept.
void FailExpired(Call& call, const Status& status, const ListParameters& list,
                 const Selection& selection) {
  if (status.reason() != Reason::kExpired || list.continue_token.empty()) return call.Fail(status);
  const Status expired(
      Reason::kExpired,
      "The provided continue parameter is too old to display a consistent list result. Start a new "
      "list without it, or go on with the token in this answer: the rest is then not from the same "
      "moment as what you have.");
  net::Response response = ErrorResponse(expired);
  if (Result<ContinueToken> token = DecodeContinue(list.continue_token, selection.prefix())) {
    token->revision = ContinueToken::kLatest;
    response.body = json::Write(
        StatusObject(expired).SetPath({"metadata", "continue"}, EncodeContinue(*token)));
  }
  call.Send(std::move(response));
}

Status List(Core& core, const CallPtr& call, const ResourcePtr& resource) {
  ASSIGN_OR_RETURN(AnswerFormat format, FormatOf(*call, resource));
  ASSIGN_OR_RETURN(const ListParameters list, ParseListParameters(call->info(), false));
  ASSIGN_OR_RETURN(const SelectionPtr selection, Selection::Make(resource->kind, call->info()));
  ASSIGN_OR_RETURN(ContinueToken start, StartOf(core, list, *selection));

  Page page;
  SelectionPtr filter;  // applied while the body is rendered
  if (list.limit > 0) {
    Result<Page> limited = LimitedPage(core, *selection, start, static_cast<size_t>(list.limit));
    if (!limited) {
      FailExpired(*call, limited.error(), list, *selection);
      return Status::Ok();
    }
    page = std::move(*limited);
  } else {
    Result<store::RangeResult> range =
        core.store.Range(selection->prefix(), start.after, 0, start.revision);
    if (!range) {
      FailExpired(*call, range.error(), list, *selection);
      return Status::Ok();
    }
    page.entries = std::move(range->entries);
    page.facts.revision = start.revision;
    if (!selection->everything()) filter = selection;
  }
  ListBody body(std::move(format), std::move(page.entries), page.facts, std::move(filter),
                core.loop.Now());
  ReplyList(*call, std::move(body));
  return Status::Ok();
}

}  // namespace

void HandleGet(Core& core, const CallPtr& call, const ResourcePtr& resource) {
  if (Status status = Get(core, call, resource); !status.ok()) call->Fail(status);
}

void HandleList(Core& core, const CallPtr& call, const ResourcePtr& resource) {
  if (Status status = List(core, call, resource); !status.ok()) call->Fail(status);
}

}  // namespace muster::apiserver
