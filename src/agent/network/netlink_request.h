// src/agent/network/netlink_request.h
//
// NetlinkRequest: the bytes of one netlink message, built from its header on (routes, nftables,
// connection tracking).
//
// Thread: any (a value).

#pragma once

#include <endian.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "agent/network/ipv4.h"

namespace muster::agent {

class NetlinkRequest {
 public:
  template <class Header>
  NetlinkRequest(uint16_t type, uint16_t flags, const Header& header) {
    nlmsghdr message{};
    message.nlmsg_type = type;
    message.nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | flags);
    Append(&message, sizeof message);
    Append(&header, sizeof header);
  }

  NetlinkRequest& Bytes(uint16_t type, const void* data, size_t size) {
    const rtattr attribute{static_cast<uint16_t>(RTA_LENGTH(size)), type};
    Append(&attribute, sizeof attribute);
    Append(data, size);
    return *this;
  }
  NetlinkRequest& Text(uint16_t type, std::string_view text) {
    return Bytes(type, std::string(text).c_str(), text.size() + 1);
  }
  NetlinkRequest& Number(uint16_t type, uint32_t number) {
    return Bytes(type, &number, sizeof number);
  }
  NetlinkRequest& Address(uint16_t type, Ipv4 address) {
    const uint32_t wire = htobe32(address.value);
    return Bytes(type, &wire, sizeof wire);
  }
  // Attributes up to the matching End() are inside this one. `header` is what stands before them.
  NetlinkRequest& Begin(uint16_t type, const void* header = nullptr, size_t size = 0) {
    open_.push_back(bytes_.size());
    return Bytes(type, header, size);
  }
  NetlinkRequest& End() {
    rtattr attribute{};
    std::memcpy(&attribute, bytes_.data() + open_.back(), sizeof attribute);
    attribute.rta_len = static_cast<uint16_t>(bytes_.size() - open_.back());
    std::memcpy(bytes_.data() + open_.back(), &attribute, sizeof attribute);
    open_.pop_back();
    return *this;
  }

  std::string_view Finish(uint32_t sequence) {
    nlmsghdr message{};
    std::memcpy(&message, bytes_.data(), sizeof message);
    message.nlmsg_len = static_cast<uint32_t>(bytes_.size());
    message.nlmsg_seq = sequence;
    std::memcpy(bytes_.data(), &message, sizeof message);
    return bytes_;
  }

 private:
  void Append(const void* data, size_t size) {
    if (size > 0) bytes_.append(static_cast<const char*>(data), size);
    bytes_.resize(NLMSG_ALIGN(bytes_.size()), '\0');
  }

  std::string bytes_;
  std::vector<size_t> open_;
};

}  // namespace muster::agent
