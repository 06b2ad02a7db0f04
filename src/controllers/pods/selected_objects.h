// src/controllers/pods/selected_objects.h
//
// Which objects a label selector means, and which selectors mean an object, without looking at all
// of them: objects are indexed by each of their labels, selectors by one label that they demand.
//
// Thread: the loop thread.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/reconcile.h"
#include "json/value.h"
#include "schema/label_selector.h"

namespace muster::controllers {

// Call in Setup(), for the objects that are selected. They must keep metadata.labels.
void IndexByLabels(client::Informer& objects);
// Objects of the namespace that it selects, by name. REQUIRES: IndexByLabels(objects).
std::vector<client::ObjectKey> Select(const client::Informer& objects, const std::string& ns,
                                      const schema::LabelSelector& selector);

using SelectorOf = std::function<schema::LabelSelector(const json::Value& owner)>;

// Call in Setup(), for the objects that select.
void IndexBySelector(client::Informer& owners, const SelectorOf& selector_of);
// Owners of the namespace that select these labels. REQUIRES: IndexBySelector(owners, selector_of).
std::vector<client::ObjectKey> SelectedBy(const client::Informer& owners,
                                          const SelectorOf& selector_of, const std::string& ns,
                                          const json::Value& labels);

// spec.selector, a metav1.LabelSelector; one that cannot be read selects nothing.
schema::LabelSelector SelectorOfSpec(const json::Value& owner);

// Wakes the owners that select an object which nobody controls. REQUIRES: IndexBySelector(owners,
// SelectorOfSpec), which outlives the trigger.
client::Trigger OnOrphan(const client::Resource& resource, const client::Informer& owners);

// All objects that `owner` controls or selects, by name. REQUIRES: IndexByController(objects),
// IndexByLabels(objects).
std::vector<json::Value> Candidates(const client::Informer& objects, const json::Value& owner,
                                    const schema::LabelSelector& selector);

}  // namespace muster::controllers
