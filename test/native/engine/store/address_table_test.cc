#include "store/address_table.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "store/address_collector.h"
#include "store/address_key.h"
#include "store/segment_removal.h"
#include "support/seed.h"
#include "support/temp_directory.h"

namespace capfleet::test {
namespace {

uint64_t keyOf(uint32_t address) { return addressKey({AddressPart::kIpv4, address}); }

SegmentContent contentOf(uint32_t number) {
  return {number, 1 + number % 7, 1000 + number, number, 5, 10 + number, ~number};
}

/// The column of a segment that has these addresses.
AddressColumn columnOf(uint32_t number, const std::vector<uint32_t>& addresses) {
  AddressCollector collector;
  for (const uint32_t address : addresses) collector.add({AddressPart::kIpv4, address});
  std::vector<uint64_t> lines = collector.takeLines(uint64_t{1} << 30);
  EXPECT_FALSE(lines.empty());
  return {contentOf(number), std::move(lines)};
}

/// Different numbers of addresses, so that segments have different numbers of lines.
std::vector<uint32_t> addressesOf(std::mt19937_64& random, uint32_t number) {
  std::vector<uint32_t> addresses(1 + (number % 5) * 150);
  for (uint32_t& address : addresses) address = static_cast<uint32_t>(random());
  return addresses;
}

class AddressTables : public ::testing::Test {
 protected:
  void add(uint32_t number) {
    addresses_[number] = addressesOf(random_, number);
    ASSERT_TRUE(addAddresses(folder(), columnOf(number, addresses_[number])));
    if (number == 63) {
      ASSERT_TRUE(transposeAddresses(folder(), number));
    }
  }

  std::string folder() const { return directory_.path(); }
  std::string path(uint32_t number = 0) const { return addressTablePath(folder(), number); }

  AddressTable open(uint32_t number = 0) const { return AddressTable::open(folder(), number); }

  /// No segment may be missing where it has an address; returns how many others were found.
  uint64_t check(AddressTable& table) const {
    uint64_t others = 0;
    for (const auto& [number, addresses] : addresses_) {
      for (const uint32_t address : addresses) {
        const uint64_t held = table.mayHold(keyOf(address));
        EXPECT_TRUE(held >> number % 64 & 1) << number;
        for (const auto& [other, _] : addresses_) others += held >> other % 64 & 1;
        others--;
      }
    }
    return others;
  }

  void rewrite(const Bytes& bytes) const {
    std::ofstream out(path(), std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
  }

  std::mt19937_64 random_ = seededRandom();
  std::map<uint32_t, std::vector<uint32_t>> addresses_;
  TempDirectory directory_;
};

TEST_F(AddressTables, FindEveryAddressWhileTheyFillAndAfterwards) {
  for (uint32_t number = 1; number < 64; number++) {
    add(number);
    if (number % 9 != 0 && number < 62) continue;
    AddressTable table = open(number);
    EXPECT_TRUE(table.isSound()) << number;
    uint64_t pairs = 0;
    for (const auto& [_, addresses] : addresses_) pairs += addresses.size() * addresses_.size();
    EXPECT_LE(check(table), pairs / 50) << number;
    for (uint32_t other = 1; other < 64; other++) {
      if (other <= number) {
        EXPECT_EQ(table.contentOf(other), contentOf(other));
      } else {
        EXPECT_FALSE(table.contentOf(other));
        EXPECT_TRUE(table.mayHold(1) >> other & 1);
      }
    }
  }
  EXPECT_EQ(readFile(path()).size() % 4096, 0u) << "the table of 64 is transposed";
}

TEST_F(AddressTables, ReadLittleForOneAddress) {
  for (uint32_t number = 64; number < 128; number++) {
    std::vector<uint32_t> addresses(20'000);
    for (uint32_t& address : addresses) address = static_cast<uint32_t>(random_());
    ASSERT_TRUE(addAddresses(folder(), columnOf(number, addresses)));
  }
  ASSERT_TRUE(transposeAddresses(folder(), 100));
  EXPECT_GT(readFile(path(64)).size(), size_t{4} << 20);
  AddressTable table = open(64);
  table.mayHold(keyOf(0x0a000001));
  EXPECT_LE(table.readBytes(), 5 * 4096u);
}

TEST_F(AddressTables, KnowOnlyTheContentThatASegmentHadThen) {
  add(7);
  EXPECT_FALSE(open().contentOf(64 + 7));
  EXPECT_FALSE(open(64).contentOf(64 + 7));
  const SegmentContent content = open().contentOf(7).value();
  const SegmentEntry right{
      .number = 7, .minNs = 5, .maxNs = 17, .packets = 7, .bytes = 1007, .checksum = ~7u};
  EXPECT_TRUE(content.matches(right));
  for (const auto& change : std::vector<std::function<void(SegmentEntry&)>>{
           [](SegmentEntry& entry) { entry.number++; }, [](SegmentEntry& entry) { entry.minNs++; },
           [](SegmentEntry& entry) { entry.maxNs++; }, [](SegmentEntry& entry) { entry.packets++; },
           [](SegmentEntry& entry) { entry.bytes++; },
           [](SegmentEntry& entry) { entry.checksum++; },
           [](SegmentEntry& entry) { entry.checksum = 0; }}) {
    SegmentEntry wrong = right;
    change(wrong);
    EXPECT_FALSE(content.matches(wrong));
  }
}

TEST_F(AddressTables, TakeASegmentWithoutLinesForOneThatMayHoldAnyAddress) {
  for (uint32_t number = 1; number < 63; number++) add(number);
  ASSERT_TRUE(addAddresses(folder(), {contentOf(63), {}}));
  for (const bool isTransposed : {false, true}) {
    if (isTransposed) {
      ASSERT_TRUE(transposeAddresses(folder(), 0));
    }
    AddressTable table = open();
    EXPECT_EQ(table.contentOf(63), contentOf(63));
    for (uint32_t address = 0; address < 1000; address++) {
      EXPECT_TRUE(table.mayHold(keyOf(address)) >> 63 & 1);
    }
    check(table);
  }
}

TEST_F(AddressTables, ReplaceWhatTheyHadOfASegment) {
  for (const uint32_t last : {50u, 63u}) {
    for (uint32_t number = 1; number <= last; number++) add(number);
    ASSERT_TRUE(addAddresses(folder(), columnOf(9, {0x0a000001})));
    addresses_[9] = {0x0a000001};
    AddressTable table = open();
    check(table);
    EXPECT_TRUE(table.isSound());
  }
}

TEST_F(AddressTables, ThatAreDamagedRuleOutNothingWrongly) {
  for (const uint32_t last : {12u, 63u}) {
    for (uint32_t number = 1; number <= last; number++) add(number);
    const Bytes whole = readFile(path());
    for (int i = 0; i < turns(80, 12); i++) {
      Bytes damaged = whole;
      if (i % 3 == 0) {
        damaged.resize(randomBelow(random_, damaged.size()));
      } else {
        damaged[randomBelow(random_, i % 3 == 1 ? damaged.size() : 200)] ^= 0x40;
      }
      rewrite(damaged);
      AddressTable table = open();
      check(table);
      EXPECT_TRUE(last == 63 || table.isSound()) << "a damaged column is not known";
    }
    rewrite(whole);
  }
}

TEST_F(AddressTables, ContinueAfterATornColumn) {
  for (uint32_t number = 1; number <= 5; number++) add(number);
  const Bytes whole = readFile(path());
  for (const size_t left : {size_t{0}, size_t{3}, size_t{8}, size_t{30}, whole.size() - 1}) {
    rewrite({whole.begin(), whole.begin() + static_cast<ptrdiff_t>(left)});
    for (uint32_t number = 6; number <= 63; number++) add(number);
    AddressTable table = open();
    EXPECT_TRUE(table.isSound()) << left;
    for (uint32_t number = 6; number <= 63; number++) {
      EXPECT_EQ(table.contentOf(number), contentOf(number));
    }
    check(table);
    addresses_.clear();
    rewrite(whole);
  }
}

TEST_F(AddressTables, LoseOnlyTheColumnWithADamagedBit) {
  for (uint32_t number = 1; number <= 20; number++) add(number);
  Bytes bytes = readFile(path());
  bytes[bytes.size() / 2] ^= 1;
  rewrite(bytes);
  uint32_t known = 0;
  for (uint32_t number = 1; number <= 20; number++) {
    known += open().contentOf(number).has_value();
  }
  EXPECT_EQ(known, 19u);
  add(21);
  EXPECT_TRUE(open().contentOf(21));
  AddressTable table = open();
  check(table);
}

TEST_F(AddressTables, TransposeOnceAndOnlyWhatExists) {
  EXPECT_TRUE(transposeAddresses(folder(), 5));
  EXPECT_FALSE(std::filesystem::exists(path()));
  for (uint32_t number = 1; number <= 20; number++) add(number);
  ASSERT_TRUE(transposeAddresses(folder(), 5));
  const Bytes bytes = readFile(path());
  EXPECT_EQ(bytes.size() % 4096, 0u);
  ASSERT_TRUE(transposeAddresses(folder(), 5));
  EXPECT_EQ(readFile(path()), bytes);
}

TEST_F(AddressTables, AcceptColumnsFromSeveralWriters) {
  std::vector<AddressColumn> columns;
  for (uint32_t number = 1; number < 64; number++) {
    addresses_[number] = addressesOf(random_, number);
    columns.push_back(columnOf(number, addresses_[number]));
  }
  std::vector<std::thread> writers;
  for (size_t writer = 0; writer < 4; writer++) {
    writers.emplace_back([&, writer] {
      for (size_t i = writer; i < columns.size(); i += 4) {
        EXPECT_TRUE(addAddresses(folder(), columns[i]));
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  AddressTable table = open();
  EXPECT_TRUE(table.isSound());
  check(table);
  for (const AddressColumn& column : columns) {
    EXPECT_EQ(table.contentOf(column.segment.number), column.segment);
  }
}

TEST_F(AddressTables, AreRemovedWithTheLastOfTheirSegments) {
  std::filesystem::create_directory(groupFolder(folder(), 0));
  const auto segment = [&](uint32_t number) { return storedSegmentPath(folder(), number, false); };
  for (uint32_t number = 1; number < 30; number++) {
    add(number);
    std::ofstream(segment(number) + ".pcap");
  }
  for (uint32_t number = 1; number < 30; number++) {
    if (number == 7) continue;
    ASSERT_TRUE(removeSegment(segment(number), false));
    EXPECT_TRUE(std::filesystem::exists(path())) << number;
  }
  ASSERT_TRUE(removeSegment(segment(7), false));
  EXPECT_FALSE(std::filesystem::exists(path()));
}

}  // namespace
}  // namespace capfleet::test
