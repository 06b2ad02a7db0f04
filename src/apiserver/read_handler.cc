// GET on an object and on a collection.

#include "apiserver/errors.h"
#include "apiserver/handlers.h"
#include "apiserver/list_body.h"
#include "apiserver/list_parameters.h"
#include "apiserver/negotiation.h"
#include "apiserver/reply.h"
#include "apiserver/selection.h"
#include "apiserver/stored_object.h"

namespace muster::apiserver {
namespace {

// Entries looked at by one Range() while a limited LIST with selectors searches for matches.
constexpr size_t kSearchPage = 1000;

// Range() at one revision: in the store's memory, or of the past on any thread.
using Ranger = store::Store::PastReader;

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
  SelectionPtr filter;  // applied while the body is rendered
};

// A limited LIST with selectors: looks further until the limit is reached.
Result<Page> SearchPage(const Ranger& range_of, const Selection& selection, ContinueToken from,
                        size_t limit) {
  Page page;
  page.facts.revision = from.revision;
  for (size_t searched = 0; searched < kMaxSearchedEntries; searched += kSearchPage) {
    ASSIGN_OR_RETURN(store::RangeResult range,
                     range_of(selection.prefix(), from.after, kSearchPage));
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

// All of it without a limit (0).
Result<Page> MakePage(const Ranger& range_of, const SelectionPtr& selection, ContinueToken from,
                      size_t limit) {
  if (limit > 0 && !selection->everything())
    return SearchPage(range_of, *selection, std::move(from), limit);
  Page page;
  ASSIGN_OR_RETURN(store::RangeResult range, range_of(selection->prefix(), from.after, limit));
  page.entries = std::move(range.entries);
  page.facts.revision = from.revision;
  if (range.more) {
    page.facts.remaining = range.remaining;
    page.facts.continue_token = EncodeContinue({from.revision, page.entries.back()->key});
  }
  if (!selection->everything()) page.filter = selection;
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
  json::Value object = StatusObject(expired);
  if (Result<ContinueToken> token = DecodeContinue(list.continue_token, selection.prefix())) {
    token->revision = ContinueToken::kLatest;
    object = object.SetPath({"metadata", "continue"}, EncodeContinue(*token));
  }
  const bool protobuf = PrefersProtobuf(call.request().headers.Get("Accept"));
  call.Send(ErrorResponse(expired, object, protobuf));
}

// One LIST, from its start to its answer.
struct Listing {
  CallPtr call;
  AnswerFormat format;
  ListParameters list;
  SelectionPtr selection;
  ContinueToken start;

  void Answer(Core& core, Result<Page> page) {
    if (!page) return FailExpired(*call, page.error(), list, *selection);
    ListBody body(std::move(format), std::move(page->entries), page->facts, std::move(page->filter),
                  core.loop.Now());
    ReplyList(core, call, std::move(body));
  }
};

// A revision that left the memory is read from the disk, away from the loop.
void ListThePast(Core& core, Listing listing) {
  if (core.past_reads >= kMaxPastReads) {
    return listing.call->Fail(
        Error(Reason::kTooManyRequests,
              "{} lists of old revisions are being read from the disk: try again later, or list "
              "without resourceVersionMatch=Exact",
              core.past_reads));
  }
  ++core.past_reads;
  auto shared = std::make_shared<Listing>(std::move(listing));
  auto page = std::make_shared<Result<Page>>(Page());
  core.options.pool->Run(
      [range_of = core.store.Past(shared->start.revision), shared, page] {
        *page = MakePage(range_of, shared->selection, shared->start,
                         static_cast<size_t>(shared->list.limit));
      },
      core.loop, core.Guarded([&core, shared, page] {
        --core.past_reads;
        shared->Answer(core, std::move(*page));
      }));
}

Status List(Core& core, const CallPtr& call, const ResourcePtr& resource) {
  Listing listing;
  listing.call = call;
  ASSIGN_OR_RETURN(listing.format, FormatOf(*call, resource));
  ASSIGN_OR_RETURN(listing.list, ParseListParameters(call->info(), false));
  ASSIGN_OR_RETURN(listing.selection, Selection::Make(resource->kind, call->info()));
  ASSIGN_OR_RETURN(listing.start, StartOf(core, listing.list, *listing.selection));
  const store::Revision revision = listing.start.revision;
  if (core.options.pool != nullptr && !core.store.InMemory(revision)) {
    ListThePast(core, std::move(listing));
    return Status::Ok();
  }
  const Ranger range_of = [&core, revision](std::string_view prefix, std::string_view after,
                                            size_t limit) {
    return core.store.Range(prefix, after, limit, revision);
  };
  listing.Answer(core, MakePage(range_of, listing.selection, listing.start,
                                static_cast<size_t>(listing.list.limit)));
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
