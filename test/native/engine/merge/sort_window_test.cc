#include "merge/sort_window.h"

#include <gtest/gtest.h>

#include <limits>

#include "support/seed.h"
#include "support/stream_pieces.h"

namespace capfleet::test {
namespace {

constexpr int64_t kNanos = 1'000'000'000;
constexpr size_t kNoBytesLimit = size_t{1} << 40;
/// What the window counts for each record in addition to its bytes.
constexpr size_t kHoldingBytes = 64;

std::vector<Bytes> sortedByTime(std::vector<Bytes> records) {
  std::ranges::stable_sort(records, {}, [](const Bytes& record) { return timeOf(record, kNanos); });
  return records;
}

/// The expected output, by the definition of the window in its simplest form.
std::vector<Bytes> expectedOf(const std::vector<Bytes>& records, const SortWindow::Limits& limits) {
  std::vector<Bytes> held;
  std::vector<Bytes> out;
  int64_t latestNs = 0;
  size_t bytes = 0;
  for (const Bytes& record : records) {
    const int64_t timeNs = timeOf(record, kNanos);
    if (timeNs < limits.fromNs || timeNs >= limits.toNs) continue;
    held.push_back(record);
    held = sortedByTime(held);
    bytes += record.size() + kHoldingBytes;
    latestNs = std::max(latestNs, timeOf(record, kNanos));
    while (!held.empty() &&
           (latestNs - timeOf(held.front(), kNanos) >= limits.ns || bytes > limits.bytes)) {
      bytes -= held.front().size() + kHoldingBytes;
      out.push_back(held.front());
      held.erase(held.begin());
    }
  }
  out.insert(out.end(), held.begin(), held.end());
  return out;
}

uint64_t outOfOrder(const std::vector<Bytes>& records) {
  uint64_t count = 0;
  int64_t latestNs = 0;
  for (const Bytes& record : records) {
    const int64_t timeNs = timeOf(record, kNanos);
    if (timeNs < latestNs) count++;
    latestNs = std::max(latestNs, timeNs);
  }
  return count;
}

/// A stream that is read through a window, each piece of which is freed as soon as it was taken.
class WindowedStream {
 public:
  WindowedStream(const Bytes& stream, const SortWindow::Limits& limits, PieceSizes sizes)
      : input_({.marksAll = true}), pieces_(stream), sizes_(std::move(sizes)), window_(limits) {}

  /// False if there is nothing more.
  bool fill() {
    while (!window_.records().hasRecord()) {
      if (at_ == pieces_.size()) {
        if (hasEnded_) return false;
        hasEnded_ = true;
        window_.end();
        continue;
      }
      const size_t bytes = std::min(sizes_(), pieces_.size() - at_);
      const auto piece = std::make_unique<uint8_t[]>(bytes);
      std::copy_n(&pieces_[at_], bytes, piece.get());
      at_ += bytes;
      input_.show({piece.get(), bytes});
      window_.takeAll(input_);
      std::fill_n(piece.get(), bytes, uint8_t{0xEE});
    }
    return true;
  }

  RecordInput& stream() { return input_; }
  RecordInput& records() { return window_.records(); }
  size_t shown() const { return at_; }
  /// The stream broke off; another one with the same bytes follows, starting at `at`.
  void continueAt(size_t at) {
    input_.forget();
    at_ = at;
  }

 private:
  RecordInput input_;
  Bytes pieces_;
  PieceSizes sizes_;
  SortWindow window_;
  size_t at_ = 0;
  bool hasEnded_ = false;
};

std::vector<Bytes> takeAll(WindowedStream& stream) {
  std::vector<Bytes> taken;
  while (stream.fill()) {
    const auto record = stream.records().record();
    taken.emplace_back(record.begin(), record.end());
    stream.records().take();
  }
  return taken;
}

/// Times grow by at most `stepNs` and are late by at most `lateNs`; each record has a number.
Bytes randomStream(std::mt19937_64& random, size_t records, int64_t stepNs, int64_t lateNs) {
  Bytes stream;
  int64_t nowNs = 100 * kNanos;
  for (size_t i = 0; i < records; i++) {
    if (randomBelow(random, 3) > 0) nowNs += static_cast<int64_t>(random() % (stepNs + 1));
    const bool isLate = randomBelow(random, 2) == 0;
    const int64_t ns = nowNs - (isLate ? static_cast<int64_t>(random() % (lateNs + 1)) : 0);
    Bytes captured(4 + randomBelow(random, 40));
    storeLe32(captured.data(), static_cast<uint32_t>(i));
    appendRecord(stream, static_cast<uint32_t>(ns / kNanos), static_cast<uint32_t>(ns % kNanos),
                 captured);
  }
  return stream;
}

TEST(SortWindow, SortsAllThatIsAtMostTheWindowLate) {
  auto random = seededRandom();
  for (int i = 0; i < 1500; i++) {
    const int64_t windowNs = i % 2 == 0 ? 3 : kNanos;
    const Bytes stream =
        randomStream(random, randomBelow(random, 120), windowNs * (i % 5) / 2, windowNs);
    const auto records = recordsOf(stream);
    WindowedStream windowed(stream, {.ns = windowNs, .bytes = kNoBytesLimit},
                            [&] { return 1 + randomBelow(random, 300); });
    ASSERT_EQ(takeAll(windowed), sortedByTime(records)) << i;
    ASSERT_EQ(windowed.records().figures().outOfOrder, 0u);
    ASSERT_EQ(windowed.records().figures().packets, records.size());
    ASSERT_EQ(windowed.stream().figures().outOfOrder, outOfOrder(records));
  }
}

TEST(SortWindow, PassesRecordsOnAsItsDefinitionSaysInAnyPieces) {
  auto random = seededRandom();
  for (int i = 0; i < 1500; i++) {
    const Bytes stream = randomStream(random, randomBelow(random, 90), 4, 12);
    const SortWindow::Limits limits{
        .ns = static_cast<int64_t>(randomBelow(random, 9)),
        .bytes = i % 2 == 0 ? kNoBytesLimit : randomBelow(random, 1500)};
    const auto expected = expectedOf(recordsOf(stream), limits);
    const size_t pieceBytes = 1 + randomBelow(random, i % 3 == 0 ? 5000 : 60);
    WindowedStream windowed(stream, limits, [&] { return 1 + randomBelow(random, pieceBytes); });
    ASSERT_EQ(takeAll(windowed), expected) << i;
    ASSERT_EQ(windowed.records().figures().outOfOrder, outOfOrder(expected));
  }
}

Bytes streamAt(const std::vector<int64_t>& timesNs) {
  Bytes stream;
  for (const int64_t ns : timesNs) {
    appendRecord(stream, static_cast<uint32_t>(ns / kNanos), static_cast<uint32_t>(ns % kNanos),
                 Bytes(1, static_cast<uint8_t>(stream.size())));
  }
  return stream;
}

std::vector<int64_t> timesOf(const std::vector<Bytes>& records) {
  std::vector<int64_t> times;
  for (const Bytes& record : records) times.push_back(timeOf(record, kNanos));
  return times;
}

std::vector<int64_t> sortedTimes(const std::vector<int64_t>& timesNs) {
  WindowedStream windowed(streamAt(timesNs), {}, [] { return SIZE_MAX; });
  return timesOf(takeAll(windowed));
}

TEST(SortWindow, HoldsForASecondToTheNanosecond) {
  const int64_t from = 5 * kNanos;
  EXPECT_EQ(sortedTimes({from + kNanos, from}), (std::vector{from, from + kNanos}));
  EXPECT_EQ(sortedTimes({from - 1, from + kNanos, from - 1, from}),
            (std::vector{from - 1, from - 1, from, from + kNanos}))
      << "a nanosecond more than a second late, and behind nothing that is later";
  EXPECT_EQ(sortedTimes({from, from + kNanos, from - 1}),
            (std::vector{from, from - 1, from + kNanos}));
}

TEST(SortWindow, WaitsForALaterRecordOrTheEnd) {
  const Bytes stream = streamAt({5 * kNanos, 5 * kNanos + 1, 6 * kNanos, 7 * kNanos});
  RecordInput input({});
  SortWindow window({});
  std::vector<size_t> atHand;
  for (const Bytes& record : recordsOf(stream)) {
    Bytes piece = record;
    input.show(piece);
    window.takeAll(input);
    atHand.push_back(window.records().skip(9, nullptr));
  }
  EXPECT_EQ(atHand, (std::vector<size_t>{0, 0, 1, 2}));
  window.end();
  EXPECT_EQ(window.records().skip(9, nullptr), 1u);
  EXPECT_FALSE(window.records().hasRecord());
}

TEST(SortWindow, KeepsARecordOfTheFarFutureForItsPlace) {
  const int64_t last = (int64_t{1} << 32) * kNanos - 1;
  EXPECT_EQ(sortedTimes({5, last, 9, 6, 10}), (std::vector<int64_t>{5, 9, 6, 10, last}));
  EXPECT_EQ(sortedTimes({last, 0, last}), (std::vector<int64_t>{0, last, last}));
}

TEST(SortWindow, HoldsNoMoreThanItMay) {
  Bytes stream;
  // Falling times: each is earlier than all that are held.
  for (uint32_t i = 0; i < 1000; i++) appendRecord(stream, 1, 1'000'000 - i, Bytes(1000, 1));
  constexpr size_t kRecordBytes = 1016 + kHoldingBytes;
  WindowedStream windowed(stream, {.bytes = 10 * kRecordBytes}, [] { return 1016; });
  size_t most = 0;
  for (uint64_t taken = 0; windowed.fill(); taken++) {
    most = std::max(most, windowed.shown() / 1016 - taken);
    windowed.records().take();
  }
  EXPECT_EQ(most, 11u) << "ten that are held, and the one that comes out";
}

TEST(SortWindow, StreamsThatBreakOffLoseAndRepeatNothing) {
  auto random = seededRandom();
  for (int i = 0; i < 1000; i++) {
    const Bytes stream = randomStream(random, 1 + randomBelow(random, 90), 4, 12);
    const SortWindow::Limits limits{
        .ns = static_cast<int64_t>(randomBelow(random, 9)),
        .bytes = i % 2 == 0 ? kNoBytesLimit : randomBelow(random, 1500),
        .fromNs = i % 3 == 0 ? 100 * kNanos + static_cast<int64_t>(randomBelow(random, 90)) : 0,
        .toNs = i % 3 == 1 ? 100 * kNanos + static_cast<int64_t>(randomBelow(random, 200))
                           : std::numeric_limits<int64_t>::max()};
    WindowedStream windowed(stream, limits, [&] { return 1 + randomBelow(random, 200); });
    std::vector<Bytes> taken;
    while (windowed.fill()) {
      const auto record = windowed.records().record();
      taken.emplace_back(record.begin(), record.end());
      windowed.records().take();
      if (randomBelow(random, 10) > 0) continue;
      // The device sends everything again, and the position is found by its mark.
      const RecordFigures figures = windowed.stream().figures();
      RecordInput again({});
      StreamPieces pieces(again, stream, [] { return SIZE_MAX; });
      uint64_t hash = 0;
      ASSERT_TRUE(pieces.fill());
      ASSERT_EQ(again.skip(figures.tail.packets, &hash), figures.packets);
      ASSERT_EQ(hash, figures.tail.hash);
      windowed.continueAt(figures.bytes);
    }
    ASSERT_EQ(taken, expectedOf(recordsOf(stream), limits));
  }
}

TEST(SortWindow, DropsRecordsOutsideOfTheRange) {
  const Bytes stream = streamAt({4, 5, 9, 6, 10, 11, 3, 9});
  WindowedStream windowed(stream, {.ns = 3, .fromNs = 5, .toNs = 10}, [] { return SIZE_MAX; });
  std::vector<int64_t> times;
  for (const Bytes& record : takeAll(windowed)) times.push_back(timeOf(record, kNanos));
  EXPECT_EQ(times, (std::vector<int64_t>{5, 6, 9, 9}));
  EXPECT_EQ(windowed.records().figures().packets, 4u);
  EXPECT_EQ(windowed.stream().figures().packets, 8u) << "the device sent them";
  EXPECT_EQ(windowed.stream().figures().tail.packets, 8u);
}

TEST(SortWindow, ForgetsWhatWasNotTaken) {
  const Bytes stream = streamAt({5 * kNanos, 6 * kNanos, 6 * kNanos + 1});
  WindowedStream windowed(stream, {}, [] { return SIZE_MAX; });
  ASSERT_TRUE(windowed.fill());
  SortWindow window({});
  RecordInput input({});
  Bytes piece = stream;
  input.show(piece);
  window.takeAll(input);
  ASSERT_TRUE(window.records().hasRecord());
  window.forget();
  EXPECT_FALSE(window.records().hasRecord());
  window.end();
  EXPECT_FALSE(window.records().hasRecord());
  EXPECT_EQ(window.records().figures().packets, 0u);
}

}  // namespace
}  // namespace capfleet::test
