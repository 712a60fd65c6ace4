#include "import/import_ports.h"

#include <gtest/gtest.h>

namespace capfleet::test {
namespace {

TEST(ImportPorts, GiveAnInterfaceThePortOfItsIndex) {
  ImportPorts ports;
  EXPECT_EQ(ports.assign(0, 1), 0u);
  EXPECT_EQ(ports.assign(5, 113), 5u);
  EXPECT_EQ(ports.assign(0, 1), 0u);
  EXPECT_EQ(ports.linkTypeWord(5), 113u);
  EXPECT_EQ(ports.linkTypeWord(1), std::nullopt);
}

TEST(ImportPorts, MoveAnotherLinkTypeToTheNextFreePortAndKeepItThere) {
  ImportPorts ports;
  EXPECT_EQ(ports.assign(0, 1), 0u);
  EXPECT_EQ(ports.assign(1, 1), 1u);
  EXPECT_EQ(ports.assign(0, 101), 2u);
  EXPECT_EQ(ports.assign(0, 113), 3u);
  EXPECT_EQ(ports.assign(0, 101), 2u);
  EXPECT_EQ(ports.assign(2, 1), 4u);
  EXPECT_EQ(ports.assign(0, 1), 0u);
}

TEST(ImportPorts, EndAt256) {
  ImportPorts ports;
  for (uint32_t i = 0; i < 256; ++i) EXPECT_EQ(ports.assign(i, 1), i);
  EXPECT_EQ(ports.assign(9, 2), std::nullopt);
  EXPECT_EQ(ports.assign(9, 1), 9u);
}

}  // namespace
}  // namespace capfleet::test
