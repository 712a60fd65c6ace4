#include "merge/record_merge.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <sstream>
#include <string>

#include "os/byte_order.h"
#include "packet/pcapng_block.h"
#include "support/pcapng_bytes.h"
#include "support/seed.h"
#include "support/stream_pieces.h"

namespace capfleet::test {
namespace {

constexpr int64_t kNanos = 1'000'000'000;
constexpr uint32_t kEthernet = 1;
constexpr uint32_t kRawIp = 101;
/// Prefix of an empty output, to check that it is not overwritten.
constexpr uint8_t kFill = 0xEE;

struct Case {
  std::vector<Bytes> streams = {};
  RecordMergeOptions options = {};
};

struct Merged {
  Bytes bytes;
  std::vector<std::pair<uint64_t, uint64_t>> dropped;  ///< packets and bytes of each input
  std::optional<int64_t> nextNs;

  bool operator==(const Merged&) const = default;
};

// The expected result of the merge, from its definition.

struct Arrival {
  int64_t key;
  uint32_t input;
  int64_t time;
  Bytes record;
  Bytes sliced;   ///< as it is written
  Bytes payload;  ///< the bytes that duplicates are compared by
};

Bytes behindLinkLayer(const Bytes& record, uint32_t linkType) {
  size_t from = 16;
  if (linkType == kEthernet) {
    from += 14;
    while (from <= record.size()) {
      const int type = record[from - 2] << 8 | record[from - 1];
      if (type != 0x8100 && type != 0x88A8 && type != 0x9100 && type != 0x9200) break;
      from += 4;
    }
  }
  return {record.begin() + static_cast<ptrdiff_t>(std::min(from, record.size())), record.end()};
}

Bytes slicedOf(Bytes record, std::optional<uint32_t> sliceBytes) {
  if (!sliceBytes || record.size() <= 16 + *sliceBytes) return record;
  record.resize(16 + *sliceBytes);
  storeLe32(&record[8], *sliceBytes);
  return record;
}

std::vector<Arrival> inOrder(const Case& given) {
  const uint32_t linkType = given.options.linkTypeWord & 0xFFFF;
  std::vector<Arrival> all;
  for (uint32_t input = 0; input < given.streams.size(); input++) {
    int64_t key = 0;
    for (const Bytes& record : recordsOf(given.streams[input])) {
      const int64_t time = timeOf(record, kNanos);
      key = std::max(key, time);
      const Bytes sliced = slicedOf(record, given.options.sliceBytes);
      all.push_back({key, input, time, record, sliced, behindLinkLayer(sliced, linkType)});
    }
  }
  std::ranges::stable_sort(all, [](const Arrival& a, const Arrival& b) {
    return std::pair(a.key, a.input) < std::pair(b.key, b.input);
  });
  return all;
}

bool isDuplicate(const Arrival& packet, const std::vector<const Arrival*>& passed,
                 const Case& given) {
  return std::ranges::any_of(passed, [&](const Arrival* before) {
    return packet.key - before->key <= given.options.dedup->spanNs &&
           before->payload == packet.payload;
  });
}

Merged expectedOf(const Case& given) {
  const auto& options = given.options;
  const auto all = inOrder(given);
  Merged merged;
  merged.dropped.resize(given.streams.size());
  std::vector<const Arrival*> passed;
  for (const Arrival& packet : all) {
    if (options.maxSpanNs && packet.key - all.front().key >= *options.maxSpanNs) {
      break;
    }
    if (options.dedup && isDuplicate(packet, passed, given)) {
      merged.dropped[packet.input].first++;
      merged.dropped[packet.input].second += packet.record.size();
      continue;
    }
    Bytes record = packet.sliced;
    if (passed.size() == options.maxPackets ||
        (options.maxBytes && merged.bytes.size() + record.size() > *options.maxBytes)) {
      merged.nextNs = packet.time;
      break;
    }
    passed.push_back(&packet);
    merged.dropped[packet.input].second += packet.record.size() - record.size();
    if (options.toMicroseconds) storeLe32(&record[4], loadLe32(&record[4]) / 1000);
    merged.bytes.insert(merged.bytes.end(), record.begin(), record.end());
  }
  return merged;
}

// The result of the merge.

size_t longestRecord(const Case& given) {
  size_t longest = 16;
  for (const Bytes& stream : given.streams) {
    for (const Bytes& record : recordsOf(stream)) longest = std::max(longest, record.size());
  }
  return longest;
}

/// Continues to the end, in separate outputs: each at least as long as the longest record, and
/// partly filled before.
Merged mergedOf(const Case& given, const PieceSizes& pieceSizes, const PieceSizes& moreOutput) {
  const size_t longest = longestRecord(given);
  std::deque<RecordInput> inputs;
  std::vector<RecordInput*> pointers;
  std::vector<StreamPieces> pieces;
  for (const Bytes& stream : given.streams) {
    RecordInput& input = inputs.emplace_back(RecordInputOptions{});
    pointers.push_back(&input);
    pieces.emplace_back(input, stream, pieceSizes).fill();
  }
  RecordMerge merge(pointers, given.options);
  Merged merged;
  for (auto state = RecordMerge::State::kReady; state != RecordMerge::State::kEnd;) {
    const size_t before = moreOutput() % 4;
    Bytes output(before + longest + moreOutput(), kFill);
    output.shrink_to_fit();
    size_t written = before;
    while ((state = merge.advance(output, written)) == RecordMerge::State::kDry) {
      pieces[merge.dryInput()].fill();
      merge.refilled();
    }
    EXPECT_TRUE(state == RecordMerge::State::kEnd || written > before) << "it goes on";
    const auto at = output.begin();
    EXPECT_EQ(std::count(at, at + static_cast<ptrdiff_t>(before), kFill),
              static_cast<ptrdiff_t>(before));
    merged.bytes.insert(merged.bytes.end(), at + static_cast<ptrdiff_t>(before),
                        at + static_cast<ptrdiff_t>(written));
  }
  uint64_t taken = 0;
  for (uint32_t i = 0; i < inputs.size(); i++) {
    const auto& dropped = merge.dropped(i);
    merged.dropped.emplace_back(dropped.packets, dropped.bytes);
    taken += inputs[i].figures().bytes - dropped.bytes;
  }
  EXPECT_EQ(taken, merged.bytes.size());
  merged.nextNs = merge.nextNs();
  return merged;
}

void expectMerged(const Case& given, const PieceSizes& pieceSizes, const PieceSizes& moreOutput) {
  const Merged expected = expectedOf(given);
  const Merged merged = mergedOf(given, pieceSizes, moreOutput);
  ASSERT_EQ(merged.bytes.size(), expected.bytes.size());
  ASSERT_TRUE(merged == expected);
}

// Random cases.

struct TimeShape {
  uint32_t firstSecond;
  uint32_t maxStep;
  bool isFraction;  ///< whether times differ in the fraction, otherwise in the seconds
};

Bytes randomStream(std::mt19937_64& random, const TimeShape& shape, size_t packets) {
  Bytes stream;
  uint32_t now = 0;
  const size_t rarity = 2 + randomBelow(random, 40);
  while (packets-- > 0) {
    // Bursts of equal or neighbouring times form runs.
    if (randomBelow(random, 3) > 0) now += static_cast<uint32_t>(random() % (shape.maxStep + 1));
    const bool isLate = randomBelow(random, rarity) == 0;
    const uint32_t steps = now - (isLate ? std::min(now, 1 + 3 * shape.maxStep) : 0);
    // Few values, so that packets repeat, also with another link-layer header or a VLAN tag.
    Bytes captured(randomBelow(random, 3) == 0 ? randomBelow(random, 100) : 20, 0);
    if (captured.size() > 18 && randomBelow(random, 2) == 0) {
      captured[12] = randomBelow(random, 2) == 0 ? 0x81 : 0x92;
    }
    if (!captured.empty()) {
      captured.front() = static_cast<uint8_t>(random() % 2);
      captured.back() = static_cast<uint8_t>(random() % 4);
    }
    appendRecord(stream, shape.firstSecond + (shape.isFraction ? 0 : steps),
                 shape.isFraction ? steps : 0, captured);
  }
  return stream;
}

Case randomCase(std::mt19937_64& random) {
  Case given;
  const bool isFraction = randomBelow(random, 2) == 0;
  const TimeShape shape{static_cast<uint32_t>(randomBelow(random, 3)) * 2'000'000'000,
                        static_cast<uint32_t>(randomBelow(random, 5)), isFraction};
  given.streams.resize(1 + randomBelow(random, random() % 20 == 0 ? 40 : 6));
  const size_t packets = 1 + randomBelow(random, 60);
  for (Bytes& stream : given.streams) {
    stream = randomStream(random, shape, randomBelow(random, packets));
    // The last record may be incomplete, as from a device that broke off.
    if (randomBelow(random, 8) == 0) stream.resize(randomBelow(random, stream.size() + 1));
  }
  const int64_t stepNs = isFraction ? 1 : kNanos;
  const auto duration = [&] {
    return static_cast<int64_t>(randomBelow(random, 40)) * stepNs +
           static_cast<int64_t>(randomBelow(random, 2));
  };
  RecordMergeOptions& options = given.options;
  options.linkTypeWord = randomBelow(random, 4) == 0 ? kRawIp : 0x14000000 | kEthernet;
  if (randomBelow(random, 3) == 0) options.maxSpanNs = duration();
  if (randomBelow(random, 4) == 0) options.maxPackets = randomBelow(random, packets);
  if (randomBelow(random, 4) == 0) options.maxBytes = randomBelow(random, 36 * packets);
  if (randomBelow(random, 4) == 0) options.dedup = {duration()};
  if (randomBelow(random, 4) == 0) {
    options.sliceBytes = static_cast<uint32_t>(randomBelow(random, 24));
  }
  options.toMicroseconds = randomBelow(random, 2) == 0;
  return given;
}

TEST(RecordMerge, MergesLikeAStableSort) {
  auto random = seededRandom();
  for (int i = 0; i < turns(5000, 400); i++) {
    const Case given = randomCase(random);
    const size_t pieceBytes = 1 + randomBelow(random, i % 2 == 0 ? 60 : 4000);
    const size_t outputBytes = 1 + randomBelow(random, i % 3 == 0 ? 4000 : 100);
    ASSERT_NO_FATAL_FAILURE(expectMerged(
        given, [&] { return 1 + randomBelow(random, pieceBytes); },
        [&] { return randomBelow(random, outputBytes); }))
        << "case " << i;
  }
}

/// Without options, in pieces and outputs that hold everything.
Merged mergedAtOnce(const Case& given) {
  return mergedOf(
      given, [] { return SIZE_MAX; }, [] { return size_t{1} << 16; });
}

Bytes streamOf(const std::vector<std::pair<uint32_t, uint32_t>>& times, uint8_t mark) {
  Bytes stream;
  for (const auto& [seconds, fraction] : times) {
    appendRecord(stream, seconds, fraction, Bytes(20, mark));
  }
  return stream;
}

std::vector<int> marksOf(const Bytes& stream) {
  std::vector<int> marks;
  for (const Bytes& record : recordsOf(stream)) marks.push_back(record.back());
  return marks;
}

/// Merges tagged streams as pcapng, whose interfaces have the tags 0 to 2, and every second input
/// has interface 3 without tags.
struct InBlocks {
  Bytes bytes;
  std::vector<uint64_t> packets;
  std::vector<uint64_t> duplicates;
  std::optional<int64_t> nextNs;
};

/// What the block says of copies: how many of each interface, by its name.
std::map<std::string, uint64_t> copiesIn(const uint8_t* block) {
  std::map<std::string, uint64_t> copies;
  const size_t plain = packetBlockBytes(loadPacketBlock(block).capturedLength);
  const std::string begin = "capfleet copies: ";
  for (const uint8_t* at = block + plain - kBlockTrailerBytes;
       at + 8 < block + blockBytes(block);) {
    const uint16_t length = loadLe16(at + 2);
    const std::string text(at + 4, at + 4 + length);
    at += 4 + blockPadded(length);
    if (!text.starts_with(begin)) continue;
    std::istringstream parts(text.substr(begin.size()));
    for (std::string part; std::getline(parts, part, ',');) {
      std::istringstream words(part);
      uint64_t count = 0;
      std::string name;
      words >> count >> name;
      copies[name] += count;
    }
  }
  return copies;
}

/// As interfaceOf() writes it.
uint32_t portOf(const uint8_t* description) { return description[28] - uint32_t{'0'}; }

constexpr uint32_t kTags = 3;
constexpr uint64_t kClosingBytes = 40;

bool isTagged(uint32_t input) { return input % 2 == 0; }

InBlocks inBlocks(Case given, std::mt19937_64& random) {
  MergedInterfaces interfaces;
  for (uint32_t i = 0; i <= kTags; i++) {
    interfaces.add("p" + std::to_string(i), given.options.linkTypeWord,
                   interfaceOf(i, kEthernet).description);
  }
  PcapngOutput output{&interfaces, {}, kClosingBytes};
  std::deque<RecordInput> inputs;
  std::vector<RecordInput*> pointers;
  std::vector<StreamPieces> pieces;
  for (uint32_t i = 0; i < given.streams.size(); i++) {
    Bytes tagged;
    for (const Bytes& record : recordsOf(given.streams[i])) {
      Bytes captured;
      put32(captured, record.back() % kTags);
      captured.insert(captured.end(), record.begin() + 16, record.end());
      appendRecord(tagged, loadLe32(&record[0]), loadLe32(&record[4]), captured);
      storeLe32(&tagged[tagged.size() - captured.size() - 4], loadLe32(&record[12]));
    }
    const TaggedStream stream =
        taggedStream(recordsOf(tagged), random, 1 + randomBelow(random, 10));
    output.ofInputs.push_back(isTagged(i) ? std::nullopt : std::optional(kTags));
    RecordInput& input = inputs.emplace_back(RecordInputOptions{.isTagged = isTagged(i)});
    pointers.push_back(&input);
    pieces
        .emplace_back(
            input, isTagged(i) ? stream.bytes : given.streams[i],
            isTagged(i) ? stream.sizes() : PieceSizes([&] { return 1 + randomBelow(random, 200); }))
        .fill();
  }
  given.options.pcapng = output;
  RecordMerge merge(pointers, given.options);
  InBlocks made;
  for (auto state = RecordMerge::State::kReady; state != RecordMerge::State::kEnd;) {
    Bytes bytes(longestRecord(given) + 300 + randomBelow(random, 500));
    size_t written = 0;
    while ((state = merge.advance(bytes, written)) == RecordMerge::State::kDry) {
      pieces[merge.dryInput()].fill();
      merge.refilled();
    }
    made.bytes.insert(made.bytes.end(), bytes.begin(),
                      bytes.begin() + static_cast<ptrdiff_t>(written));
  }
  for (uint32_t i = 0; i <= kTags; i++) {
    made.packets.push_back(interfaces.at(i).packets);
    made.duplicates.push_back(interfaces.at(i).duplicates);
  }
  made.nextNs = merge.nextNs();
  return made;
}

TEST(RecordMerge, WritesTheSamePacketsInBlocks) {
  auto random = seededRandom();
  for (int i = 0; i < turns(2000, 200); i++) {
    Case given = randomCase(random);
    const auto maxBytes = std::exchange(given.options.maxBytes, std::nullopt);
    const Merged expected = mergedOf(
        given, [] { return SIZE_MAX; }, [] { return size_t{1} << 12; });
    given.options.maxBytes = maxBytes;
    const InBlocks found = inBlocks(given, random);
    const auto records = recordsOf(expected.bytes);
    const int64_t unit = given.options.toMicroseconds ? 1000 : 1;
    size_t packets = 0;
    uint64_t described = 0;
    std::vector<uint64_t> counts(kTags + 1);
    std::vector<uint32_t> order;
    for (size_t at = 0; at < found.bytes.size(); at += blockBytes(&found.bytes[at])) {
      if (blockType(&found.bytes[at]) == kInterfaceBlock) {
        order.push_back(portOf(&found.bytes[at]));
        described++;
        continue;
      }
      const PacketBlock block = loadPacketBlock(&found.bytes[at]);
      ASSERT_LT(packets, records.size());
      const Bytes& record = records[packets++];
      ASSERT_EQ(block.timestampNs, timeOf(record, kNanos / unit) * unit);
      ASSERT_EQ(block.originalLength, loadLe32(&record[12]));
      ASSERT_TRUE(std::ranges::equal(
          std::span(&found.bytes[at] + kPacketBlockHeaderBytes, block.capturedLength),
          std::span(record).subspan(16)));
      ASSERT_LT(block.interfaceNumber, order.size()) << "it was described before";
      counts[order[block.interfaceNumber]]++;
    }
    EXPECT_EQ(counts, found.packets);
    if (!maxBytes) {
      std::vector<uint64_t> duplicates(kTags + 1);
      for (size_t at = 0; at < found.bytes.size(); at += blockBytes(&found.bytes[at])) {
        if (blockType(&found.bytes[at]) == kInterfaceBlock) continue;
        for (const auto& [name, count] : copiesIn(&found.bytes[at])) {
          duplicates.at(static_cast<size_t>(name.at(1) - '0')) += count;
        }
      }
      EXPECT_EQ(duplicates, found.duplicates);
      if (given.options.maxPackets) continue;
      given.options.dedup.reset();
      EXPECT_LE(found.bytes.size(), inBlocks(given, random).bytes.size());
    }
    if (maxBytes) {
      EXPECT_LE(found.bytes.size() + kClosingBytes * described, *maxBytes);
      EXPECT_TRUE(packets == records.size() || found.nextNs);
    } else {
      EXPECT_EQ(packets, records.size());
    }
  }
}

TEST(RecordMerge, GivesRemarksToTheNextPacketThatIsWritten) {
  MergedInterfaces interfaces;
  for (uint32_t i = 0; i < 2; i++) {
    interfaces.add("p" + std::to_string(i), kEthernet, interfaceOf(i, kEthernet).description);
  }
  interfaces.remark(0, {2 * kNanos, commentOption("gap")});
  interfaces.remark(1, {0, commentOption("first")});
  interfaces.remark(1, {1, commentOption("second, as long as it is")});
  const Bytes stream = streamOf({{1, 0}, {2, 0}, {3, 0}}, 1);
  std::deque<RecordInput> inputs;
  std::vector<StreamPieces> pieces;
  for (int i = 0; i < 2; i++) {
    pieces.emplace_back(inputs.emplace_back(RecordInputOptions{}), stream, [] { return SIZE_MAX; })
        .fill();
  }
  RecordMergeOptions options;
  options.dedup = {0};
  options.linkTypeWord = kEthernet;
  options.pcapng = PcapngOutput{&interfaces, {0U, 1U}, 0};
  RecordMerge merge({&inputs[0], &inputs[1]}, options);
  Bytes output(4096);
  size_t written = 0;
  while (merge.advance(output, written) == RecordMerge::State::kDry) merge.refilled();
  std::vector<size_t> sizes;
  for (size_t at = 0; at < written; at += blockBytes(&output[at])) {
    if (blockType(&output[at]) == kEnhancedPacketBlock) sizes.push_back(blockBytes(&output[at]));
  }
  const size_t plain = packetBlockBytes(20);
  const size_t copies = commentOption("capfleet copies: 1 p1").size();
  EXPECT_EQ(sizes, (std::vector<size_t>{plain + copies + 4,
                                        plain + commentOption("gap").size() + copies + 4,
                                        plain + copies + 4}))
      << "packets of the second input are copies";
  EXPECT_EQ(interfaces.at(1).remarks.size(), 2U) << "for a packet that is not a copy";
  EXPECT_EQ(interfaces.at(1).duplicates, 3U);
}

/// The texts about copies in a merge of these streams, in which copies come up to 2 s later; null
/// for a packet without one.
std::vector<std::optional<std::string>> copiesTold(const std::vector<Bytes>& streams,
                                                   std::string name,
                                                   std::optional<uint64_t> maxBytes) {
  MergedInterfaces interfaces;
  std::deque<RecordInput> inputs;
  std::vector<RecordInput*> pointers;
  std::vector<StreamPieces> pieces;
  PcapngOutput output{&interfaces, {}, 0};
  for (uint32_t i = 0; i < streams.size(); i++) {
    interfaces.add(name + std::to_string(i), kEthernet, interfaceOf(i, kEthernet).description);
    output.ofInputs.emplace_back(i);
    pointers.push_back(&inputs.emplace_back(RecordInputOptions{}));
    pieces.emplace_back(inputs.back(), streams[i], [] { return SIZE_MAX; }).fill();
  }
  RecordMergeOptions options;
  options.dedup = {2 * kNanos};
  options.linkTypeWord = kEthernet;
  options.maxBytes = maxBytes;
  options.pcapng = output;
  RecordMerge merge(pointers, options);
  Bytes bytes(size_t{1} << 16);
  std::vector<std::optional<std::string>> texts;
  for (auto state = RecordMerge::State::kReady; state != RecordMerge::State::kEnd;) {
    size_t written = 0;
    while ((state = merge.advance(bytes, written)) == RecordMerge::State::kDry) merge.refilled();
    for (size_t at = 0; at < written; at += blockBytes(&bytes[at])) {
      if (blockType(&bytes[at]) != kEnhancedPacketBlock) continue;
      const size_t plain = packetBlockBytes(loadPacketBlock(&bytes[at]).capturedLength);
      std::optional<std::string>& text = texts.emplace_back();
      if (blockBytes(&bytes[at]) == plain) continue;
      const uint8_t* const option = &bytes[at + plain - kBlockTrailerBytes];
      text.emplace(option + 4, option + 4 + loadLe16(option + 2));
    }
  }
  return texts;
}

using Texts = std::vector<std::optional<std::string>>;

TEST(RecordMerge, SaysOnThePacketWhichCopiesWereLeftOut) {
  // The copy after 3 s is a packet of its own, of which the one at 5 s is a copy.
  const std::vector<Bytes> streams{streamOf({{1, 0}, {1, 0}, {4, 0}}, 1),
                                   streamOf({{2, 0}, {3, 0}, {5, 0}, {9, 0}}, 1)};
  EXPECT_EQ(copiesTold(streams, "p", {}),
            (Texts{"capfleet copies: 1 p0, 2 p1", "capfleet copies: 1 p1", std::nullopt}));
  EXPECT_EQ(copiesTold(streams, std::string(1000, 'n'), {}),
            (Texts{"capfleet copies: 3", "capfleet copies: 1", std::nullopt}))
      << "longer than the copies were";
}

TEST(RecordMerge, SaysNothingOfCopiesBeyondALimit) {
  const std::vector<Bytes> streams{streamOf({{1, 0}, {2, 0}}, 1)};
  const size_t packet = interfaceOf(0, kEthernet).description.size() + packetBlockBytes(20);
  EXPECT_EQ(copiesTold(streams, "p", packet + 27), Texts{std::nullopt});
  EXPECT_EQ(copiesTold(streams, "p", packet + 28), Texts{"capfleet copies: 1"});
  EXPECT_EQ(copiesTold(streams, "p", packet + 32), Texts{"capfleet copies: 1 p0"});
}

TEST(RecordMerge, HoldsNoMoreThanItMay) {
  // All within the time in which copies may come.
  const size_t packets = 3 * HeldPackets::kMostBytes / 2 / packetBlockBytes(60);
  Bytes stream;
  for (uint32_t i = 0; i < packets; i++) {
    Bytes captured(60, 0);
    storeLe32(&captured[20], i + 1);
    appendRecord(stream, 1, i, captured);
  }
  const Bytes last(recordsOf(stream).back());
  const Bytes first(recordsOf(stream).front());
  Bytes copies;
  for (const Bytes& record : {first, last}) {
    appendRecord(copies, 2, 0, Bytes(record.begin() + 16, record.end()));
  }
  const Texts texts = copiesTold({stream, copies}, "p", {});
  EXPECT_EQ(texts.size(), packets) << "copies are left out in any case";
  EXPECT_EQ(texts.front(), std::nullopt);
  EXPECT_EQ(texts.back(), "capfleet copies: 1 p1");
}

TEST(RecordMerge, GivesRemarksByTheirTimeInNanoseconds) {
  MergedInterfaces interfaces;
  interfaces.add("p0", kEthernet, interfaceOf(0, kEthernet).description);
  interfaces.remark(0, {2 * kNanos + 500, commentOption("of the second packet")});
  interfaces.remark(0, {kNanos, commentOption("first")});
  RecordInput input(RecordInputOptions{});
  StreamPieces pieces(input, streamOf({{1, 0}, {2, 500}, {3, 0}}, 1), [] { return SIZE_MAX; });
  pieces.fill();
  RecordMergeOptions options;
  options.linkTypeWord = kEthernet;
  options.toMicroseconds = true;
  options.pcapng = PcapngOutput{&interfaces, {0U}, 0};
  RecordMerge merge({&input}, options);
  Bytes output(4096);
  size_t written = 0;
  while (merge.advance(output, written) == RecordMerge::State::kDry) merge.refilled();
  std::vector<size_t> remarks;
  for (size_t at = 0; at < written; at += blockBytes(&output[at])) {
    if (blockType(&output[at]) != kEnhancedPacketBlock) continue;
    remarks.push_back(blockBytes(&output[at]) -
                      packetBlockBytes(loadPacketBlock(&output[at]).capturedLength));
  }
  EXPECT_EQ(remarks, (std::vector<size_t>{commentOption("first").size() + 4,
                                          commentOption("of the second packet").size() + 4, 0}));
}

TEST(RecordMerge, KeepsTheOrderOfNanosecondsInsideAMicrosecond) {
  Case given;
  given.streams.resize(2);
  appendRecord(given.streams[0], 5, 1'900, {1});
  appendRecord(given.streams[0], 5, 2'100, {2});
  appendRecord(given.streams[1], 5, 1'100, {3});
  given.options.toMicroseconds = true;
  const Merged merged = mergedOf(
      given, [] { return 100; }, [] { return 0; });
  Bytes expected;
  appendRecord(expected, 5, 1, {3});
  appendRecord(expected, 5, 1, {1});
  appendRecord(expected, 5, 2, {2});
  EXPECT_EQ(merged.bytes, expected);
}

TEST(RecordMerge, NeitherHoldsNorDropsALatePacket) {
  const Case given{.streams{streamOf({{5, 0}, {1, 0}, {6, 0}}, 1), streamOf({{2, 0}, {5, 0}}, 2)}};
  EXPECT_EQ(marksOf(mergedAtOnce(given).bytes), (std::vector<int>{2, 1, 1, 2, 1}));
}

TEST(RecordMerge, MergesTimesAsFarApartAsPcapAllows) {
  const Bytes ends = streamOf({{0, 0}, {UINT32_MAX, UINT32_MAX}}, 1);
  const Bytes middle = streamOf({{0, 1}, {2'147'483'648, 0}, {UINT32_MAX, 999'999}}, 2);
  Case given{.streams{ends, middle}};
  EXPECT_EQ(marksOf(mergedAtOnce(given).bytes), (std::vector<int>{1, 2, 2, 2, 1}));
  given.options.maxSpanNs = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(mergedAtOnce(given), expectedOf(Case{.streams = given.streams}))
      << "a span behind the end of time limits nothing";
  given.options.maxSpanNs = 1'000'000;
  EXPECT_EQ(marksOf(mergedAtOnce(given).bytes), (std::vector<int>{1, 2}));
}

TEST(RecordMerge, TellsTheOwnTimeOfAPacketThatALimitLeftOut) {
  Case given{.streams{streamOf({{5, 0}, {1, 7}, {6, 0}}, 1)}};
  given.options.maxPackets = 1;
  EXPECT_EQ(mergedAtOnce(given).nextNs, kNanos + 7);
  given.options.maxPackets = 3;
  EXPECT_EQ(mergedAtOnce(given).nextNs, std::nullopt) << "there was no more";
}

TEST(RecordMerge, ForgetsTheOldestPacketWhenMoreAreRememberedThanThereIsRoom) {
  for (const uint64_t between : {DuplicateWindow::kRemembered - 1, DuplicateWindow::kRemembered}) {
    const Bytes same = streamOf({{1, 0}}, 1);
    Bytes stream = same;
    for (uint64_t i = 0; i < between; i++) {
      Bytes other(20);
      storeLe32(&other[14], static_cast<uint32_t>(i + 2));
      appendRecord(stream, 1, 0, other);
    }
    Case given{.streams{stream, same}};
    given.options.dedup = {kNanos};
    given.options.linkTypeWord = kEthernet;
    const uint64_t dropped = between < DuplicateWindow::kRemembered ? 1 : 0;
    EXPECT_EQ(mergedAtOnce(given).dropped[1].first, dropped) << between;
  }
}

TEST(RecordMerge, DropsWhatOneInputRepeats) {
  const Bytes once = streamOf({{1, 0}}, 1);
  Case given{.streams{Bytes{}, once}};
  for (int i = 0; i < 1000; i++) {
    given.streams[0].insert(given.streams[0].end(), once.begin(), once.end());
  }
  given.options.dedup = {kNanos};
  given.options.linkTypeWord = kEthernet;
  const Merged merged = mergedAtOnce(given);
  EXPECT_EQ(merged.bytes, once);
  EXPECT_EQ(merged.dropped[0].first, 999u);
  EXPECT_EQ(merged.dropped[1].first, 1u);
}

TEST(RecordMerge, EndsAtOnceWithoutPackets) {
  EXPECT_EQ(mergedAtOnce(Case{.streams{{}}}).bytes, Bytes{});
  Case given{.streams{{}, {}, {}}};
  given.options.maxSpanNs = 5;
  EXPECT_EQ(mergedAtOnce(given).bytes, Bytes{});
}

}  // namespace
}  // namespace capfleet::test
