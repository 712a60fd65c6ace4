#include "merge/pcapng_records.h"

#include <gtest/gtest.h>

#include "packet/pcapng_block.h"
#include "support/pcapng_bytes.h"
#include "support/seed.h"
#include "support/stream_pieces.h"

namespace capfleet::test {
namespace {

constexpr int64_t kNanos = 1'000'000'000;
constexpr uint32_t kNameResolutionBlock = 4;
constexpr uint32_t kStatisticsBlock = 5;

/// What a stream was turned into.
struct Converted {
  Bytes records;
  std::vector<Bytes> blocks;  ///< descriptions and statistics
  std::vector<std::pair<int64_t, Bytes>> remarks;
  std::string failure;
  bool isBetweenBlocks = false;

  bool operator==(const Converted&) const = default;
};

/// Appends tagged records to `to`, without what is between them.
void appendTagged(Bytes& to, std::span<const uint8_t> records) {
  while (!records.empty()) {
    const size_t bytes = kRecordHeaderBytes + loadLe32(&records[8]);
    ASSERT_LE(bytes, records.size());
    to.insert(to.end(), records.begin(), records.begin() + static_cast<ptrdiff_t>(bytes));
    if (bytes == records.size()) return;
    records = records.subspan(bytes + betweenTaggedRecords(static_cast<uint32_t>(bytes)));
  }
}

/// Interfaces have the tags 70, 71 and so on.
Converted converted(const Bytes& stream, const PieceSizes& pieceSizes) {
  PcapngRecords records;
  Converted made;
  uint32_t tag = 70;
  std::optional<int64_t> remarkedNs;
  for (size_t at = 0; at < stream.size() && made.failure.empty();) {
    const size_t bytes = std::min(pieceSizes(), stream.size() - at);
    // Memory of its own, so that a sanitizer sees what is read or written after its end.
    Bytes piece(stream.begin() + static_cast<ptrdiff_t>(at),
                stream.begin() + static_cast<ptrdiff_t>(at + bytes));
    at += bytes;
    records.show(piece);
    for (auto state = PcapngRecords::State::kInterface; state != PcapngRecords::State::kDry;) {
      state = records.advance();
      if (state == PcapngRecords::State::kBroken) {
        made.failure = records.failure();
        break;
      }
      const Bytes block(records.block().begin(), records.block().end());
      if (state == PcapngRecords::State::kInterface) {
        records.addInterface(tag++);
        made.blocks.push_back(block);
      } else if (state == PcapngRecords::State::kStatistics) {
        made.blocks.push_back(block);
      } else if (state == PcapngRecords::State::kRemark) {
        remarkedNs = records.remark().timestampNs;
        made.remarks.emplace_back(*remarkedNs, block);
      } else if (state == PcapngRecords::State::kRecords) {
        const size_t before = made.records.size();
        appendTagged(made.records, records.records());
        const Bytes first(made.records.begin() + static_cast<ptrdiff_t>(before),
                          made.records.end());
        if (remarkedNs) {
          EXPECT_EQ(timeOf(first, kNanos), *std::exchange(remarkedNs, std::nullopt));
        }
      }
    }
  }
  EXPECT_FALSE(remarkedNs) << "a packet follows each remark";
  made.isBetweenBlocks = records.isBetweenBlocks();
  return made;
}

Bytes packetBlock(const PacketBlock& packet, const Bytes& captured, const Bytes& options = {}) {
  Bytes block(packetBlockBytes(packet.capturedLength));
  storePacketBlock(block.data(), packet);
  std::ranges::copy(captured, block.begin() + kPacketBlockHeaderBytes);
  if (options.empty()) return block;
  const Bytes body(block.begin() + 8, block.end() - kBlockTrailerBytes);
  Bytes all = body;
  append(all, options);
  return blockOf(kEnhancedPacketBlock, all);
}

Bytes statisticsBlock(uint32_t interfaceNumber) {
  Bytes body;
  put32(body, interfaceNumber);
  put32(body, 0);
  put32(body, 0);
  return blockOf(kStatisticsBlock, body);
}

struct Made {
  Bytes stream;
  Converted expected;
};

Made randomStream(std::mt19937_64& random) {
  Made made{sectionHeader(), {}};
  const size_t interfaces = 1 + randomBelow(random, 3);
  const auto add = [&](const Bytes& block) { append(made.stream, block); };
  for (uint32_t i = 0; i < interfaces; i++) {
    const Bytes description = interfaceOf(i, 1).description;
    add(description);
    made.expected.blocks.push_back(description);
  }
  int64_t ns = 1'790'000'000 * kNanos;
  for (size_t count = randomBelow(random, 40); count > 0; count--) {
    ns += static_cast<int64_t>(randomBelow(random, 3 * kNanos));
    const auto number = static_cast<uint32_t>(randomBelow(random, interfaces));
    if (randomBelow(random, 9) == 0) add(blockOf(kNameResolutionBlock, Bytes(12, 7)));
    if (randomBelow(random, 9) == 0) {
      add(statisticsBlock(number));
      made.expected.blocks.push_back(statisticsBlock(number));
    }
    Bytes captured(randomBelow(random, 4) == 0 ? randomBelow(random, 3) : randomBelow(random, 90));
    for (uint8_t& byte : captured) byte = static_cast<uint8_t>(random());
    const auto length = static_cast<uint32_t>(captured.size());
    const Bytes options = randomBelow(random, 4) == 0 ? commentOption("a remark") : Bytes{};
    add(packetBlock({number, ns, length, length + 9}, captured, options));
    if (!options.empty()) made.expected.remarks.emplace_back(ns, options);
    Bytes record(kRecordHeaderBytes + kInterfaceTagBytes);
    storeRecordHeader(record.data(), {ns, length + kInterfaceTagBytes, length + 9});
    storeLe32(record.data() + kRecordHeaderBytes, 70 + number);
    append(record, captured);
    append(made.expected.records, record);
  }
  made.expected.isBetweenBlocks = true;
  return made;
}

TEST(PcapngRecords, TurnsBlocksIntoTaggedRecordsInAnyPieces) {
  auto random = seededRandom();
  for (int i = 0; i < turns(2000, 200); i++) {
    const Made made = randomStream(random);
    for (const size_t pieceBytes : {size_t{1}, size_t{7}, size_t{100}, size_t{1} << 20}) {
      const Converted found =
          converted(made.stream, [&] { return 1 + randomBelow(random, pieceBytes); });
      ASSERT_TRUE(found == made.expected) << "case " << i << ", pieces of " << pieceBytes;
    }
  }
}

TEST(PcapngRecords, KnowsWhetherAStreamMayEnd) {
  auto random = seededRandom();
  const Made made = randomStream(random);
  std::vector<size_t> ends;
  for (size_t at = 0; at < made.stream.size();) {
    at += blockBytes(&made.stream[at]);
    ends.push_back(at);
  }
  for (size_t bytes = 0; bytes <= made.stream.size(); bytes++) {
    const Bytes cut(made.stream.begin(), made.stream.begin() + static_cast<ptrdiff_t>(bytes));
    const bool isWhole = std::ranges::find(ends, bytes) != ends.end();
    EXPECT_EQ(converted(cut, [] { return size_t{64}; }).isBetweenBlocks, isWhole) << bytes;
  }
}

TEST(PcapngRecords, RefusesWhatCapfleetDoesNotWrite) {
  const auto failureOf = [](const std::vector<Bytes>& blocks) {
    Bytes stream;
    for (const Bytes& block : blocks) append(stream, block);
    const std::string whole = converted(stream, [] { return SIZE_MAX; }).failure;
    EXPECT_EQ(converted(stream, [] { return size_t{1}; }).failure, whole);
    return whole;
  };
  const Bytes described = interfaceOf(0, 1).description;
  const Bytes packet = packetBlock({0, 5, 4, 4}, Bytes(4));
  const auto changed = [](Bytes block, size_t at, uint32_t value) {
    storeLe32(&block[at], value);
    return block;
  };
  EXPECT_EQ(failureOf({sectionHeader(), described, packet}), "");
  EXPECT_EQ(failureOf({described}), "it does not begin with a section");
  EXPECT_EQ(failureOf({sectionHeader(), sectionHeader()}), "it has a second section");
  EXPECT_EQ(failureOf({changed(sectionHeader(), 8, 0x4D3C2B1A)}),
            "its section is not little-endian");
  EXPECT_EQ(failureOf({sectionHeader(), packet}),
            "a packet is from an interface that it did not describe");
  EXPECT_EQ(failureOf({sectionHeader(), described, statisticsBlock(1)}),
            "it has statistics of an interface that it did not describe");
  EXPECT_EQ(failureOf({sectionHeader(), described, changed(packet, 4, 35)}),
            "a block claims 35 bytes");
  EXPECT_EQ(failureOf({sectionHeader(), described, changed(packet, packet.size() - 4, 40)}),
            "a block has two lengths");
  EXPECT_EQ(failureOf({sectionHeader(), described, changed(packet, 20, 5'000)}),
            "a packet claims 5000 captured bytes");
  EXPECT_EQ(failureOf({sectionHeader(), described, changed(packet, 12, 0x7FFFFFFF)}),
            "a packet has a time that PCAP cannot represent");
  EXPECT_EQ(failureOf({sectionHeader(), changed(described, 4, 0x10000000)}),
            "a block without a packet claims 268435456 bytes");
}

}  // namespace
}  // namespace capfleet::test
