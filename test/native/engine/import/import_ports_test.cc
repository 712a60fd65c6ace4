#include "import/import_ports.h"

#include <gtest/gtest.h>

namespace capfleet::test {
namespace {

TEST(ImportPorts, GiveAnInterfaceThePortOfItsIndex) {
  ImportPorts ports;
  ports.announce(0, 1);
  ports.announce(5, 113);
  EXPECT_EQ(ports.linkTypeWord(0), 1u);
  EXPECT_EQ(ports.linkTypeWord(5), 113u);
  EXPECT_EQ(ports.linkTypeWord(1), std::nullopt);
  EXPECT_EQ(ports.take(5, 113), 5u);
  EXPECT_EQ(ports.take(0, 1), 0u);
}

TEST(ImportPorts, MoveAnotherLinkTypeToTheNextFreePortAndKeepItThere) {
  ImportPorts ports;
  for (const auto& [index, linkType] : {std::pair(0u, 1u), {1u, 1u}, {0u, 101u}, {0u, 113u}}) {
    ports.announce(index, linkType);
  }
  ports.announce(2, 1);
  EXPECT_EQ(ports.take(0, 101), 2u);
  EXPECT_EQ(ports.take(0, 113), 3u);
  EXPECT_EQ(ports.take(2, 1), 4u);
  EXPECT_EQ(ports.take(0, 101), 2u);
  EXPECT_EQ(ports.take(0, 1), 0u);
  EXPECT_EQ(ports.sharedInterfaces(), 0u);
}

TEST(ImportPorts, GiveAnInterfaceBeyond256APortOfOneWithoutPackets) {
  ImportPorts ports;
  for (uint32_t i = 0; i < 300; ++i) ports.announce(i, 1);
  EXPECT_EQ(ports.take(255, 1), 255u);
  EXPECT_EQ(ports.take(299, 1), 254u);
  EXPECT_EQ(ports.take(9, 113), 253u);
  EXPECT_EQ(ports.linkTypeWord(253), 113u);
  EXPECT_EQ(ports.take(254, 1), 252u);
  EXPECT_EQ(ports.take(299, 1), 254u);
  EXPECT_EQ(ports.sharedInterfaces(), 0u);
}

TEST(ImportPorts, AreSharedByInterfacesOfOneLinkTypeWhenAllHavePackets) {
  ImportPorts ports;
  for (uint32_t i = 0; i < 256; ++i) EXPECT_EQ(ports.take(i, i == 3 ? 113 : 1), i);
  EXPECT_EQ(ports.sharedInterfaces(), 0u);
  EXPECT_EQ(ports.take(256, 113), 3u);
  EXPECT_EQ(ports.take(256, 1), 0u);
  EXPECT_EQ(ports.sharedInterfaces(), 2u);
  EXPECT_EQ(ports.take(9, 2), std::nullopt);
}

}  // namespace
}  // namespace capfleet::test
