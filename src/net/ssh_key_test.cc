#include "net/ssh_key.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "net/signing_key.h"

namespace muster::net {
namespace {

TEST(SshKey, BothHalvesAreOfOneKeyOnP256) {
  const SshKeyPair pair = GenerateSshKey();
  const auto key = SigningKey::FromPem(pair.private_pem);
  ASSERT_TRUE(key.has_value()) << pair.private_pem;
  const auto words = SplitNonEmpty(pair.public_line, ' ');
  ASSERT_EQ(words.size(), 2u);
  EXPECT_EQ(words[0], "ecdsa-sha2-nistp256");
  ASSERT_TRUE(words[1].ends_with('\n'));
  const auto blob = Base64Decode(words[1].substr(0, words[1].size() - 1));
  ASSERT_TRUE(blob.has_value());
  const auto length = [](char size) { return std::string(3, '\0') + size; };
  EXPECT_EQ(*blob, length(19) + "ecdsa-sha2-nistp256" + length(8) + "nistp256" + length(65) +
                       "\x04" + (*key)->x() + (*key)->y());
  EXPECT_NE(GenerateSshKey().private_pem, pair.private_pem);
}

}  // namespace
}  // namespace muster::net
