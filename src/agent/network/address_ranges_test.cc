#include "agent/network/address_ranges.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace muster::agent {
namespace {

Ipv4Prefix Range(std::string_view text) { return Ipv4Prefix::Parse(text).value(); }

std::string Chosen(const std::vector<std::string>& taken) {
  std::vector<Ipv4Prefix> ranges;
  for (const std::string& text : taken) ranges.push_back(Range(text));
  const auto chosen = ChooseAddressRanges(ranges);
  return chosen ? chosen->pods.ToString() + " " + chosen->services.ToString() : "none";
}

TEST(ChooseAddressRanges, TheUsualOnesUnlessTheyAreTaken) {
  EXPECT_EQ(Chosen({}), "10.42.0.0/16 10.43.0.0/16");
  EXPECT_EQ(Chosen({"192.168.1.0/24", "10.0.0.0/16"}), "10.42.0.0/16 10.43.0.0/16");
  EXPECT_EQ(Chosen({"10.42.7.0/24"}), "10.43.0.0/16 10.44.0.0/16");
  EXPECT_EQ(Chosen({"10.43.0.9/32"}), "10.42.0.0/16 10.44.0.0/16");
  EXPECT_EQ(Chosen({"10.40.0.0/13"}), "10.48.0.0/16 10.49.0.0/16") << "a part of a larger one";
  EXPECT_EQ(Chosen({"10.0.0.0/8"}), "172.16.0.0/16 172.17.0.0/16");
  EXPECT_EQ(Chosen({"10.0.0.0/8", "172.16.0.0/12"}), "100.64.0.0/16 100.65.0.0/16");
  EXPECT_EQ(Chosen({"10.0.0.0/8", "172.16.0.0/12", "100.64.0.0/10"}),
            "198.18.0.0/16 198.19.0.0/16");
  EXPECT_EQ(Chosen({"10.0.0.0/8", "172.16.0.0/12", "100.64.0.0/10", "198.18.0.0/24"}), "none");
}

class AddressRangesFile : public testing::Test {
 protected:
  AddressRangesFile() {
    std::string name = (std::filesystem::temp_directory_path() / "ranges-test-XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    dir_ = name;
  }
  ~AddressRangesFile() override { std::filesystem::remove_all(dir_); }
  std::string dir_;
};

TEST_F(AddressRangesFile, IsKept) {
  const auto nothing = LoadAddressRanges(dir_);
  ASSERT_TRUE(nothing.has_value());
  EXPECT_FALSE(nothing->has_value());
  const AddressRanges ranges{Range("10.50.0.0/16"), Range("172.20.0.0/16")};
  ASSERT_TRUE(SaveAddressRanges(dir_, ranges).ok());
  const auto loaded = LoadAddressRanges(dir_);
  ASSERT_TRUE(loaded.has_value() && loaded->has_value());
  EXPECT_EQ(**loaded, ranges);
  EXPECT_EQ(ranges.DnsAddress().ToString(), "10.50.0.1");
  EXPECT_EQ(ranges.NodeRange().ToString(), "10.50.0.0/24");
  EXPECT_EQ(ranges.ApiAddress().ToString(), "172.20.0.1");
}

TEST_F(AddressRangesFile, DamageIsTold) {
  for (const char* text : {"", "pods=10.42.0.0/16\n", "pods=10.42.0.0/16\nservices=10.42.0.0/24\n",
                           "pods=10.42.0.0/30\nservices=10.43.0.0/16\n", "pods=x\nservices=y\n"}) {
    std::ofstream(dir_ + "/address-ranges") << text;
    const auto loaded = LoadAddressRanges(dir_);
    ASSERT_FALSE(loaded.has_value()) << text;
    EXPECT_EQ(loaded.error().reason(), Reason::kInvalid);
    EXPECT_NE(loaded.error().message().find(dir_ + "/address-ranges is damaged"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace muster::agent
