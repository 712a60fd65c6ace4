#include "merge/record_input.h"

#include <gtest/gtest.h>

#include "support/seed.h"
#include "support/stream_pieces.h"

namespace capfleet::test {
namespace {

constexpr int64_t kNanos = 1'000'000'000;
constexpr int64_t kMicros = 1'000'000;

int64_t unitsPerSecond(const RecordInputOptions& options) {
  return options.nanoseconds || options.widens ? kNanos : kMicros;
}

/// What an input must report about records, by its definition. Ties are defined only while the
/// records are in order; of the tail only the mark is defined, not how many packets it has.
struct Expected {
  uint64_t bytes = 0;
  uint64_t outOfOrder = 0;
  int64_t firstTime = 0;
  int64_t lastTime = 0;
  uint64_t tiePackets = 0;
};

Expected expectedOf(const std::vector<Bytes>& records, int64_t perSecond) {
  Expected expected;
  if (records.empty()) return {.lastTime = -1};
  expected.firstTime = expected.lastTime = timeOf(records.front(), perSecond);
  for (const Bytes& record : records) {
    const int64_t time = timeOf(record, perSecond);
    expected.bytes += record.size();
    if (time < expected.lastTime) expected.outOfOrder++;
    if (time > expected.lastTime) expected.tiePackets = 0;
    expected.tiePackets++;
    expected.lastTime = std::max(expected.lastTime, time);
  }
  return expected;
}

/// The input's figures are those of exactly these records, in the order in which it read them.
void expectFigures(RecordInput& input, const RecordInputOptions& options,
                   const std::vector<Bytes>& taken) {
  const Expected expected = expectedOf(taken, unitsPerSecond(options));
  const RecordFigures figures = input.figures();
  ASSERT_EQ(figures.packets, taken.size());
  ASSERT_EQ(figures.bytes, expected.bytes);
  ASSERT_EQ(figures.outOfOrder, expected.outOfOrder);
  ASSERT_EQ(figures.firstTime, expected.firstTime);
  ASSERT_EQ(figures.lastTime, expected.lastTime);
  if (expected.outOfOrder == 0) {
    ASSERT_EQ(figures.ties.packets, expected.tiePackets);
    ASSERT_EQ(figures.ties.hash, hashOfLast(taken, figures.ties.packets));
  }
  ASSERT_LE(figures.tail.packets, taken.size());
  ASSERT_EQ(figures.tail.hash, hashOfLast(taken, figures.tail.packets));
  const bool hasTail = !taken.empty() && (options.marksTail || expected.outOfOrder > 0);
  ASSERT_EQ(figures.tail.packets > 0, hasTail);
}

PieceSizes allOf(size_t bytes) {
  return [bytes] { return bytes; };
}

PieceSizes upTo(std::mt19937_64& random, size_t bytes) {
  return [&random, bytes] { return 1 + randomBelow(random, bytes); };
}

/// The little-endian stream as sent by a device with the byte order of the options.
Bytes asShown(const Bytes& stream, const RecordInputOptions& options) {
  return options.bigEndian ? swapped(stream) : stream;
}

/// Takes all records, compares each with `expected`, and compares the figures now and then.
void expectRecords(const Bytes& stream, const RecordInputOptions& options,
                   const std::vector<Bytes>& expected, PieceSizes sizes,
                   const std::function<bool()>& asksFigures) {
  RecordInput input(options);
  StreamPieces pieces(input, asShown(stream, options), std::move(sizes));
  std::vector<Bytes> taken;
  int64_t key = 0;
  while (pieces.fill()) {
    ASSERT_LT(taken.size(), expected.size());
    const Bytes& record = expected[taken.size()];
    ASSERT_EQ(Bytes(input.record().begin(), input.record().end()), record);
    ASSERT_EQ(input.time(), timeOf(record, unitsPerSecond(options)));
    key = std::max(key, input.time());
    ASSERT_EQ(input.key(), key);
    pieces.take();
    taken.push_back(record);
    if (!asksFigures()) continue;
    ASSERT_NO_FATAL_FAILURE(expectFigures(input, options, taken));
  }
  ASSERT_EQ(taken.size(), expected.size());
  ASSERT_NO_FATAL_FAILURE(expectFigures(input, options, taken));
}

Bytes randomCaptured(std::mt19937_64& random, size_t maxBytes) {
  Bytes captured(randomBelow(random, maxBytes + 1));
  for (uint8_t& byte : captured) byte = static_cast<uint8_t>(random());
  return captured;
}

/// With equal, late and far-apart times, and now and then a fraction of a second or more.
Bytes randomStream(std::mt19937_64& random, size_t records, bool isOrdered) {
  Bytes stream;
  uint32_t seconds = 100;
  for (size_t i = 0; i < records; i++) {
    if (randomBelow(random, 4) == 0) seconds++;
    const bool isLate = !isOrdered && randomBelow(random, 6) == 0;
    const bool isLong = !isOrdered && randomBelow(random, 10) == 0;
    appendRecord(stream, seconds - (isLate ? 2 : 0), isLong ? UINT32_MAX : 7,
                 randomCaptured(random, 40));
  }
  return stream;
}

/// Empty and short packets, ties, a late one, a fraction above a second.
Bytes mixedStream() {
  Bytes stream;
  appendRecord(stream, 1, 5, {});
  appendRecord(stream, 1, 5, Bytes(1, 0xA1));
  appendRecord(stream, 2, 999'999'999, Bytes(17, 0xA2));
  appendRecord(stream, 1, 2'500'000'000, Bytes(3, 0xA3));
  appendRecord(stream, 2, 0, Bytes(40, 0xA4));
  appendRecord(stream, 9, 1, Bytes(2, 0xA5));
  appendRecord(stream, 9, 1, {});
  return stream;
}

TEST(RecordInput, ShowsTheSameRecordsHoweverTheStreamIsCut) {
  const Bytes stream = mixedStream();
  const auto records = recordsOf(stream);
  ASSERT_EQ(records.size(), 7u);
  for (const RecordInputOptions& options :
       {RecordInputOptions{}, RecordInputOptions{.nanoseconds = false},
        RecordInputOptions{.bigEndian = true}}) {
    for (size_t bytes = 1; bytes <= 60; bytes++) {
      ASSERT_NO_FATAL_FAILURE(expectRecords(stream, options, records, allOf(bytes), [] {
        return true;
      })) << bytes;
    }
    for (size_t first = 1; first < stream.size(); first++) {
      for (size_t second = 1; second <= 60; second++) {
        size_t piece = 0;
        const auto sizes = [&] { return piece++ == 0 ? first : piece == 2 ? second : SIZE_MAX; };
        ASSERT_NO_FATAL_FAILURE(
            expectRecords(stream, options, records, sizes, [&] { return second % 2 == 0; }))
            << first << " and " << second;
      }
    }
  }
}

TEST(RecordInput, ShowsTheSameRecordsInRandomPieces) {
  auto random = seededRandom();
  for (int i = 0; i < turns(3000, 300); i++) {
    const RecordInputOptions options{.nanoseconds = randomBelow(random, 2) == 0,
                                     .bigEndian = randomBelow(random, 2) == 0,
                                     .marksTail = randomBelow(random, 2) == 0};
    const Bytes stream = randomStream(random, randomBelow(random, 150), i % 2 == 0);
    const size_t rarity = 1 + randomBelow(random, 30);
    ASSERT_NO_FATAL_FAILURE(expectRecords(stream, options, recordsOf(stream),
                                          upTo(random, i % 3 == 0 ? 5000 : 60),
                                          [&] { return randomBelow(random, rarity) == 0; }));
  }
}

void expectSameMark(const RecordMark& a, const RecordMark& b) {
  EXPECT_EQ(a.packets, b.packets);
  EXPECT_EQ(a.bytes, b.bytes);
  EXPECT_EQ(a.hash, b.hash);
}

TEST(RecordInput, ShowsTaggedRecordsAsIfNothingWereBetweenThem) {
  auto random = seededRandom();
  for (int i = 0; i < turns(3000, 300); i++) {
    RecordInputOptions options{
        .alignNs = i % 3 == 0 ? 1'234'567'890 : 0, .marksTail = i % 2 == 0, .marksAll = i % 5 == 0};
    const Bytes stream = randomStream(random, randomBelow(random, 150), i % 4 < 2);
    const TaggedStream tagged =
        taggedStream(recordsOf(stream), random, i % 7 == 0 ? 200 : 1 + randomBelow(random, 9));
    RecordInput plain(options);
    options.isTagged = true;
    RecordInput input(options);
    StreamPieces plainPieces(plain, stream, allOf(std::max<size_t>(1, stream.size())));
    StreamPieces pieces(input, tagged.bytes, tagged.sizes());
    while (pieces.fill()) {
      ASSERT_TRUE(plainPieces.fill());
      ASSERT_TRUE(std::ranges::equal(input.record(), plain.record()));
      ASSERT_EQ(input.key(), plain.key());
      pieces.take();
      plainPieces.take();
      if (randomBelow(random, 20) > 0) continue;
      ASSERT_EQ(input.figures().bytes, plain.figures().bytes);
    }
    ASSERT_FALSE(plainPieces.fill());
    const RecordFigures found = input.figures();
    const RecordFigures expected = plain.figures();
    ASSERT_EQ(found.packets, expected.packets);
    ASSERT_EQ(found.bytes, expected.bytes);
    ASSERT_EQ(found.outOfOrder, expected.outOfOrder);
    ASSERT_EQ(found.firstTime, expected.firstTime);
    ASSERT_EQ(found.lastTime, expected.lastTime);
    expectSameMark(found.ties, expected.ties);
    const auto records = recordsOf(stream);
    if (options.alignNs == 0) {
      ASSERT_EQ(found.tail.hash, hashOfLast(records, found.tail.packets));
    }
    if (options.marksAll) expectSameMark(found.tail, expected.tail);
  }
}

TEST(RecordInput, EndsInsideARecordWithItsBytesLeft) {
  const Bytes stream = mixedStream();
  const auto records = recordsOf(stream);
  for (size_t end = 0; end <= stream.size(); end++) {
    const Bytes cut(stream.begin(), stream.begin() + static_cast<ptrdiff_t>(end));
    const auto whole = recordsOf(cut);
    size_t wholeBytes = 0;
    for (const Bytes& record : whole) wholeBytes += record.size();
    for (const size_t bytes : {1, 7, 16, 60, 1000}) {
      RecordInput input({});
      StreamPieces pieces(input, cut, allOf(bytes));
      size_t taken = 0;
      for (; pieces.fill(); taken++) pieces.take();
      EXPECT_EQ(taken, whole.size());
      EXPECT_EQ(input.partialBytes(), end - wholeBytes);
      expectFigures(input, {}, whole);
      input.forget();
      EXPECT_EQ(input.partialBytes(), 0u);
      expectFigures(input, {}, whole);
    }
  }
}

/// Ends with a record whose length exceeds the maximum, and one that would follow it.
Bytes damagedStream(const Bytes& before, uint32_t claimed) {
  Bytes stream = before;
  appendRecord(stream, 10, 0, {});
  storeLe32(&stream[stream.size() - 8], claimed);
  appendRecord(stream, 11, 0, Bytes(40, 1));
  return stream;
}

TEST(RecordInput, FindsAnImpossibleLengthAtEveryCut) {
  const Bytes before = mixedStream();
  const auto records = recordsOf(before);
  for (const uint32_t claimed : {kMaxCapturedLength + 1, 0x80000000u, UINT32_MAX}) {
    const Bytes stream = damagedStream(before, claimed);
    for (size_t first = 1; first < stream.size(); first++) {
      for (const size_t then : {size_t{1}, size_t{9}, SIZE_MAX}) {
        RecordInput input({.alignNs = claimed == UINT32_MAX ? 1 : 0});
        bool isFirst = true;
        StreamPieces pieces(input, stream,
                            [&] { return std::exchange(isFirst, false) ? first : then; });
        size_t taken = 0;
        for (; pieces.fill(); taken++) pieces.take();
        ASSERT_EQ(taken, records.size());
        ASSERT_EQ(input.impossibleLength(), claimed) << first << " then " << then;
        ASSERT_EQ(input.figures().bytes, before.size());
        input.forget();
        ASSERT_EQ(input.impossibleLength(), std::nullopt);
      }
    }
  }
}

TEST(RecordInput, FindsAnImpossibleLengthOfABigEndianStreamAtEveryCut) {
  const Bytes before = mixedStream();
  const auto records = recordsOf(before);
  // In the wrong byte order it would be 1, and a valid record.
  constexpr uint32_t kClaimed = 0x01000000;
  const Bytes stream = swapped(damagedStream(before, kClaimed));
  for (size_t first = 1; first <= stream.size(); first++) {
    for (const size_t then : {size_t{1}, size_t{9}, SIZE_MAX}) {
      RecordInput input({.bigEndian = true});
      bool isFirst = true;
      StreamPieces pieces(input, stream,
                          [&] { return std::exchange(isFirst, false) ? first : then; });
      size_t taken = 0;
      for (; pieces.fill(); taken++) pieces.take();
      ASSERT_EQ(taken, records.size());
      ASSERT_EQ(input.impossibleLength(), kClaimed) << first << " then " << then;
      ASSERT_EQ(input.figures().bytes, before.size());
    }
  }
}

TEST(RecordInput, WaitsForTheRestOfABigEndianRecordThatWouldBeShortInTheOtherOrder) {
  Bytes stream;
  appendRecord(stream, 1, 5, Bytes(0x00010000, 0xB1));  // swapped: 256 bytes
  appendRecord(stream, 2, 5, Bytes(3, 0xB2));
  for (const size_t bytes : {size_t{1000}, size_t{65540}, SIZE_MAX}) {
    ASSERT_NO_FATAL_FAILURE(expectRecords(stream, {.bigEndian = true}, recordsOf(stream),
                                          allOf(bytes), [] { return true; }));
  }
}

TEST(RecordInput, TakesAPacketOfTheGreatestLength) {
  Bytes stream;
  appendRecord(stream, 1, 0, Bytes(kMaxCapturedLength, 0x5A));
  appendRecord(stream, 2, 0, Bytes(5, 0x5B));
  for (const size_t bytes :
       {size_t{1000}, size_t{65536}, kMaxCapturedLength + size_t{16}, SIZE_MAX}) {
    ASSERT_NO_FATAL_FAILURE(
        expectRecords(stream, {}, recordsOf(stream), allOf(bytes), [] { return true; }));
  }
}

TEST(RecordInput, AlignsAndWidensTimestampsAndKeepsThemInThatWhichPcapCanCarry) {
  auto random = seededRandom();
  constexpr int64_t kLastNs = (int64_t{1} << 32) * kNanos - 1;
  const std::vector<uint32_t> seconds{0, 1, 100, UINT32_MAX - 1, UINT32_MAX};
  const std::vector<uint32_t> fractions{0, 1, 999'999, 999'999'999, UINT32_MAX};
  const std::vector<int64_t> shifts{
      0, 1, -1, 999, -999, 1500, kNanos, -kNanos, kLastNs, -kLastNs, 100 * kNanos, 37 * kNanos + 5};
  for (int i = 0; i < 2000; i++) {
    const RecordInputOptions options{.nanoseconds = randomBelow(random, 2) == 0,
                                     .widens = randomBelow(random, 2) == 0,
                                     .bigEndian = randomBelow(random, 2) == 0,
                                     .alignNs = shifts[randomBelow(random, shifts.size())],
                                     .marksTail = randomBelow(random, 2) == 0};
    const int64_t shownUnitNs = options.nanoseconds ? 1 : 1000;
    const int64_t unitNs = options.widens ? 1 : shownUnitNs;
    const bool isRewritten = options.alignNs != 0 || unitNs != shownUnitNs;
    Bytes stream;
    Bytes aligned;
    for (size_t packets = randomBelow(random, 12); packets > 0; packets--) {
      const uint32_t second = seconds[randomBelow(random, seconds.size())];
      const uint32_t fraction = fractions[randomBelow(random, fractions.size())];
      const Bytes captured = randomCaptured(random, 30);
      appendRecord(stream, second, fraction, captured);
      const int64_t ns = std::clamp<int64_t>(
          second * kNanos + fraction * shownUnitNs - options.alignNs, 0, kLastNs);
      appendRecord(aligned, isRewritten ? static_cast<uint32_t>(ns / kNanos) : second,
                   isRewritten ? static_cast<uint32_t>(ns % kNanos / unitNs) : fraction, captured);
    }
    ASSERT_NO_FATAL_FAILURE(expectRecords(stream, options, recordsOf(aligned), upTo(random, 60),
                                          [&] { return randomBelow(random, 3) == 0; }));
  }
}

TEST(RecordInput, GoesOnWithAnotherStreamAfterForgetting) {
  auto random = seededRandom();
  for (int i = 0; i < turns(2000, 200); i++) {
    const RecordInputOptions options{.marksTail = i % 2 == 0};
    const auto records = recordsOf(randomStream(random, 1 + randomBelow(random, 90), i % 3 == 0));
    RecordInput input(options);
    size_t taken = 0;
    while (taken < records.size()) {
      Bytes stream;
      for (size_t j = taken; j < records.size(); j++) {
        stream.insert(stream.end(), records[j].begin(), records[j].end());
      }
      // Or ends inside a record.
      if (randomBelow(random, 2) == 0) stream.resize(1 + randomBelow(random, stream.size()));
      StreamPieces pieces(input, stream, upTo(random, 200));
      for (size_t left = randomBelow(random, 40); pieces.fill() && left > 0; left--, taken++) {
        ASSERT_EQ(Bytes(input.record().begin(), input.record().end()), records[taken]);
        pieces.take();
      }
      input.forget();
      ASSERT_FALSE(input.hasRecord());
      ASSERT_TRUE(input.untaken().empty());
      ASSERT_NO_FATAL_FAILURE(expectFigures(
          input, options, {records.begin(), records.begin() + static_cast<ptrdiff_t>(taken)}));
    }
  }
}

TEST(RecordInput, HandsOverWhatItHasNotTaken) {
  auto random = seededRandom();
  for (int i = 0; i < 1000; i++) {
    const RecordInputOptions options{.bigEndian = i % 3 == 0};
    const Bytes stream = asShown(randomStream(random, randomBelow(random, 30), false), options);
    RecordInput input(options);
    StreamPieces pieces(input, stream, upTo(random, i % 2 == 0 ? 60 : 500));
    size_t at = 0;
    for (;;) {
      Bytes untaken = input.untaken();
      const Bytes rest = pieces.rest();
      untaken.insert(untaken.end(), rest.begin(), rest.end());
      ASSERT_EQ(untaken, Bytes(stream.begin() + static_cast<ptrdiff_t>(at), stream.end()));
      if (!input.hasRecord() && !pieces.fill()) break;
      if (randomBelow(random, 3) == 0) continue;
      at += input.record().size();
      pieces.take();
    }
  }
}

/// Skips over the pieces of a stream as a resumed download does.
uint64_t skipAll(RecordInput& input, StreamPieces& pieces, uint64_t count, uint64_t* hash) {
  uint64_t taken = 0;
  while (taken < count && pieces.fill()) taken += input.skip(count - taken, hash);
  return taken;
}

/// In a new stream of the packets, of which `before` came before the marked ones.
void expectMarkFound(std::mt19937_64& random, const Bytes& stream, uint64_t before,
                     const RecordMark& mark) {
  RecordInput input({});
  StreamPieces pieces(input, stream, upTo(random, 300));
  uint64_t hash = 0;
  ASSERT_EQ(skipAll(input, pieces, before, nullptr), before);
  const uint64_t bytesBefore = input.figures().bytes;
  ASSERT_EQ(skipAll(input, pieces, mark.packets, &hash), mark.packets);
  ASSERT_EQ(hash, mark.hash);
  ASSERT_EQ(input.figures().packets, before + mark.packets);
  ASSERT_EQ(input.figures().bytes, bytesBefore + mark.bytes);
}

TEST(RecordInput, FindsTheMarkOfAnotherInputThatTookTheSamePackets) {
  auto random = seededRandom();
  for (int i = 0; i < turns(2000, 200); i++) {
    const bool isOrdered = i % 2 == 0;
    const Bytes stream = randomStream(random, 1 + randomBelow(random, 200), isOrdered);
    // The delivered packets may have had other timestamps.
    const RecordInputOptions options{
        .bigEndian = i % 7 < 3, .alignNs = i % 3 == 0 ? 1234 : 0, .marksTail = i % 5 < 2};
    RecordInput input(options);
    StreamPieces pieces(input, asShown(stream, options), upTo(random, 700));
    uint64_t taken = 0;
    for (size_t left = randomBelow(random, 250); left > 0 && pieces.fill(); left--, taken++) {
      pieces.take();
      if (randomBelow(random, 40) == 0) input.figures();
    }
    const RecordFigures figures = input.figures();
    ASSERT_EQ(figures.packets, taken);
    if (figures.outOfOrder == 0) {
      ASSERT_NO_FATAL_FAILURE(
          expectMarkFound(random, stream, taken - figures.ties.packets, figures.ties));
    }
    ASSERT_NO_FATAL_FAILURE(
        expectMarkFound(random, stream, taken - figures.tail.packets, figures.tail));
  }
}

TEST(RecordInput, MarksTheLast64OfAPieceWithMore) {
  auto random = seededRandom();
  const Bytes stream = randomStream(random, 200, true);
  RecordInput input({.marksTail = true});
  StreamPieces pieces(input, stream, allOf(SIZE_MAX));
  ASSERT_TRUE(pieces.fill());
  EXPECT_EQ(input.skip(150, nullptr), 150u);
  EXPECT_EQ(input.figures().tail.packets, 64u);
  EXPECT_EQ(input.skip(1, nullptr), 1u);
  EXPECT_EQ(input.figures().tail.packets, 1u) << "the new ones alone, when there were 64";
  EXPECT_EQ(input.skip(10, nullptr), 10u);
  EXPECT_EQ(input.figures().tail.packets, 11u);
  EXPECT_EQ(input.skip(100, nullptr), 39u);
}

TEST(RecordInput, MarksAllPacketsWhereThatIsAskedFor) {
  auto random = seededRandom();
  for (const bool isOrdered : {true, false}) {
    const Bytes stream = randomStream(random, 200, isOrdered);
    RecordInput input({.marksAll = true});
    StreamPieces pieces(input, stream, upTo(random, 700));
    for (uint64_t taken = 1; pieces.fill(); taken++) {
      pieces.take();
      ASSERT_EQ(input.figures().tail.packets, taken);
    }
    ASSERT_NO_FATAL_FAILURE(expectMarkFound(random, stream, 0, input.figures().tail));
  }
}

}  // namespace
}  // namespace capfleet::test
