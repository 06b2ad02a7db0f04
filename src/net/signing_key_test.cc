#include "net/signing_key.h"

#include <filesystem>

#include <gtest/gtest.h>

#include <sys/stat.h>

#include "base/files.h"

namespace muster::net {
namespace {

TEST(SigningKeyTest, VerifiesWhatItSigned) {
  const auto key = SigningKey::Generate();
  const std::string signature = key->Sign("a text");
  EXPECT_EQ(signature.size(), kEs256SignatureBytes);
  EXPECT_TRUE(key->Verify("a text", signature));
  EXPECT_FALSE(key->Verify("another text", signature));
  EXPECT_FALSE(SigningKey::Generate()->Verify("a text", signature));
}

TEST(SigningKeyTest, NoOtherSignatureVerifies) {
  const auto key = SigningKey::Generate();
  const std::string good = key->Sign("a text");
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    EXPECT_FALSE(key->Verify("a text", bad)) << i;
  }
  EXPECT_FALSE(key->Verify("a text", ""));
  EXPECT_FALSE(key->Verify("a text", good.substr(1)));
  EXPECT_FALSE(key->Verify("a text", good + '\0'));
  // r = s = 0, and beyond the order of the curve.
  EXPECT_FALSE(key->Verify("a text", std::string(kEs256SignatureBytes, '\0')));
  EXPECT_FALSE(key->Verify("a text", std::string(kEs256SignatureBytes, '\xff')));
}

TEST(SigningKeyTest, IsKeptInAFileOfItsOwner) {
  const std::string dir = testing::TempDir() + "signing-key";
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  const std::string path = dir + "/sa.key";
  const auto made = SigningKey::LoadOrCreate(path);
  ASSERT_TRUE(made.has_value()) << made.error().ToString();
  struct stat facts{};
  ASSERT_EQ(stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
  const auto again = SigningKey::LoadOrCreate(path);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ((*again)->id(), (*made)->id());
  EXPECT_TRUE((*again)->Verify("x", (*made)->Sign("x")));

  for (const char* broken : {"", "-----BEGIN PRIVATE KEY-----\nMIG\n-----END PRIVATE KEY-----\n"}) {
    ASSERT_TRUE(WriteFileAtomic(path, broken, 0600).ok());
    const auto refused = SigningKey::LoadOrCreate(path);
    ASSERT_FALSE(refused.has_value());
    EXPECT_NE(refused.error().message().find(path), std::string::npos);
    EXPECT_EQ(*ReadSmallFile(path), broken);
  }
  std::filesystem::remove_all(dir);
}

TEST(SigningKeyTest, OtherKeysAreRefused) {
  // A key on P-384.
  const char* other =
      "-----BEGIN PRIVATE KEY-----\n"
      "MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDD8tNT2g2ALqmVr6h3J\n"
      "aU5248qJrsyynT2B6SHdgOzW1A5YRuUSufHLbFdZtJAOw22hZANiAAQZ+sS9wlaT\n"
      "DC28GU8DiLWCNTQNh3RK4KdsOH1so/TQn3bg9alto2vDGxua+Isddnu321WkTNo1\n"
      "UMg3ewtTSpEnXECIrmjikmaGBHpGSLcwq9WVAnhsbt1b4TvVgvCivX8=\n"
      "-----END PRIVATE KEY-----\n";
  EXPECT_FALSE(SigningKey::FromPem(other).has_value());
  EXPECT_FALSE(SigningKey::FromPem("no key").has_value());
}

TEST(Base64UrlTest, HasOneTextForEachBytes) {
  EXPECT_EQ(Base64UrlEncode("\xfb\xff"), "-_8");
  EXPECT_EQ(Base64UrlDecode("-_8"), "\xfb\xff");
  EXPECT_EQ(Base64UrlDecode(""), "");
  for (const char* bad : {"+/8", "-_8=", "-_9", "a", "-_ 8", "-_8\n"}) {
    EXPECT_EQ(Base64UrlDecode(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace muster::net
