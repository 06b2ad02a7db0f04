#include <gtest/gtest.h>

#include "agent/network/ip_allocator.h"
#include "agent/network/ipv4.h"

namespace muster::agent {
namespace {

TEST(Ipv4, ReadsAndWritesDottedQuads) {
  EXPECT_EQ(Ipv4::Parse("10.42.0.1")->value, 0x0A2A0001U);
  EXPECT_EQ(Ipv4::Parse("255.255.255.255")->ToString(), "255.255.255.255");
  for (const char* bad : {"", "10.42.0", "10.42.0.1.2", "10.42.0.256", "10.042.0.1", "10.42.0.-1",
                          "10.42.0.1 ", "a.b.c.d", "10..0.1"}) {
    EXPECT_FALSE(Ipv4::Parse(bad)) << bad;
  }
}

TEST(Ipv4Prefix, KnowsItsRange) {
  const Ipv4Prefix range = *Ipv4Prefix::Parse("10.42.3.7/24");
  EXPECT_EQ(range.Network().ToString(), "10.42.3.0");
  EXPECT_EQ(range.Broadcast().ToString(), "10.42.3.255");
  EXPECT_TRUE(range.Contains(*Ipv4::Parse("10.42.3.255")));
  EXPECT_FALSE(range.Contains(*Ipv4::Parse("10.42.4.0")));
  EXPECT_EQ(range.ToString(), "10.42.3.7/24");
  EXPECT_TRUE(Ipv4Prefix::Parse("0.0.0.0/0")->Contains(*Ipv4::Parse("9.9.9.9")));
  for (const char* bad : {"10.42.0.0", "10.42.0.0/33", "10.42.0.0/", "10.42.0.0/-1", "x/8"}) {
    EXPECT_FALSE(Ipv4Prefix::Parse(bad)) << bad;
  }
}

TEST(IpAllocator, GivesTheLowestFreeAddress) {
  IpAllocator allocator(*Ipv4Prefix::Parse("10.42.0.0/24"));
  EXPECT_EQ(allocator.Gateway().ToString(), "10.42.0.1");
  EXPECT_EQ(allocator.Allocate()->ToString(), "10.42.0.2");
  EXPECT_EQ(allocator.Allocate()->ToString(), "10.42.0.3");
  allocator.Release(*Ipv4::Parse("10.42.0.2"));
  EXPECT_EQ(allocator.Allocate()->ToString(), "10.42.0.2");
  EXPECT_EQ(allocator.Allocate()->ToString(), "10.42.0.4");
}

TEST(IpAllocator, RestoresWhatExistingPodsHave) {
  IpAllocator allocator(*Ipv4Prefix::Parse("10.42.0.0/24"));
  EXPECT_TRUE(allocator.Take(*Ipv4::Parse("10.42.0.2")).ok());
  EXPECT_EQ(allocator.Take(*Ipv4::Parse("10.42.0.2")).reason(), Reason::kConflict);
  for (const char* reserved : {"10.42.0.0", "10.42.0.1", "10.42.0.255", "10.42.1.2"}) {
    EXPECT_EQ(allocator.Take(*Ipv4::Parse(reserved)).reason(), Reason::kInvalid) << reserved;
  }
  EXPECT_EQ(allocator.Allocate()->ToString(), "10.42.0.3");
  EXPECT_TRUE(allocator.IsTaken(*Ipv4::Parse("10.42.0.2")));
}

TEST(IpAllocator, GivesEachAddressOnceAndThenSaysThatAllAreTaken) {
  IpAllocator allocator(*Ipv4Prefix::Parse("10.42.0.0/28"));
  EXPECT_EQ(allocator.Capacity(), 13U);
  Ipv4 last;
  for (int i = 0; i < 13; ++i) {
    const Ipv4 next = *allocator.Allocate();
    EXPECT_GT(next, last);
    last = next;
  }
  EXPECT_EQ(allocator.Free(), 0U);
  EXPECT_EQ(allocator.Allocate().error().reason(), Reason::kTooManyRequests);
  allocator.Release(last);
  allocator.Release(last);
  EXPECT_EQ(allocator.Free(), 1U);
  EXPECT_EQ(*allocator.Allocate(), last);
}

}  // namespace
}  // namespace muster::agent
