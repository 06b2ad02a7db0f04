// src/controllers/pods/pods_by_node.h
//
// Which pods a node has, without looking at all of them.
//
// Thread: the loop thread.

#pragma once

#include <string>
#include <vector>

#include "client/reconcile.h"
#include "json/value.h"

namespace muster::controllers {

// Call in Setup(). The pods must keep spec.nodeName.
void IndexByNode(client::Informer& pods);
// By name. REQUIRES: IndexByNode(pods).
std::vector<client::ObjectKey> PodsOn(const client::Informer& pods, const std::string& node);

// The pod's node as a key; none before it is bound.
std::vector<client::ObjectKey> NodeOf(const json::Value& pod);

}  // namespace muster::controllers
