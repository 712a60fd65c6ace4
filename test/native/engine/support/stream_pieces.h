// PCAP streams for the tests of the merge, with their records read without the engine, and their
// bytes shown to an input piece by piece.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "merge/pcapng_records.h"
#include "merge/record_hash.h"
#include "merge/record_input.h"
#include "os/byte_order.h"
#include "support/seed.h"
#include "support/temp_directory.h"

namespace capfleet::test {

/// How many bytes the next piece has.
using PieceSizes = std::function<size_t()>;

inline void appendRecord(Bytes& stream, uint32_t seconds, uint32_t fraction,
                         const Bytes& captured) {
  uint8_t header[16];
  storeLe32(header, seconds);
  storeLe32(header + 4, fraction);
  storeLe32(header + 8, static_cast<uint32_t>(captured.size()));
  storeLe32(header + 12, static_cast<uint32_t>(captured.size()));
  stream.insert(stream.end(), header, header + 16);
  stream.insert(stream.end(), captured.begin(), captured.end());
}

/// The whole records of a stream without its file header.
inline std::vector<Bytes> recordsOf(const Bytes& stream) {
  std::vector<Bytes> records;
  for (auto at = stream.begin(); stream.end() - at >= 16;) {
    const auto bytes = ptrdiff_t{16} + loadLe32(&at[8]);
    if (bytes > stream.end() - at) break;
    records.emplace_back(at, at + bytes);
    at += bytes;
  }
  return records;
}

/// The same stream in the other byte order, up to a record header that is incomplete.
inline Bytes swapped(Bytes stream) {
  for (size_t at = 0; stream.size() - at >= 16;) {
    const size_t bytes = size_t{16} + loadLe32(&stream[at + 8]);
    for (size_t word = at; word < at + 16; word += 4) {
      storeLe32(&stream[word], loadBe32(&stream[word]));
    }
    at = std::min(stream.size(), at + bytes);
  }
  return stream;
}

inline int64_t timeOf(const Bytes& record, int64_t unitsPerSecond) {
  return loadLe32(&record[0]) * unitsPerSecond + loadLe32(&record[4]);
}

/// The bytes of the last `count` records.
inline uint64_t hashOfLast(const std::vector<Bytes>& records, uint64_t count) {
  uint64_t hash = 0;
  for (size_t i = records.size() - count; i < records.size(); i++) {
    hash = hashRecord(records[i], hash);
  }
  return hash;
}

/// Tagged records as they are shown to an input, and the sizes of the pieces, each of up to
/// `mostRecords` whole ones.
struct TaggedStream {
  Bytes bytes;
  std::vector<size_t> pieces;

  PieceSizes sizes() const {
    return [left = pieces]() mutable {
      const size_t first = left.front();
      left.erase(left.begin());
      return first;
    };
  }
};

inline TaggedStream taggedStream(const std::vector<Bytes>& records, std::mt19937_64& random,
                                 size_t mostRecords) {
  TaggedStream made;
  for (size_t left = 0; const Bytes& record : records) {
    if (left == 0) {
      left = 1 + randomBelow(random, mostRecords);
      made.pieces.push_back(0);
    } else {
      const auto before = static_cast<uint32_t>((&record - 1)->size());
      const Bytes between(betweenTaggedRecords(before), 0xBB);
      append(made.bytes, between);
      made.pieces.back() += between.size();
    }
    append(made.bytes, record);
    made.pieces.back() += record.size();
    left--;
  }
  return made;
}

/// Each piece is in its own heap block, overwritten and freed when the input has used it up, so
/// that a sanitizer sees every later use.
class StreamPieces {
 public:
  StreamPieces(RecordInput& input, Bytes stream, PieceSizes sizes)
      : input_(&input), stream_(std::move(stream)), sizes_(std::move(sizes)) {}

  /// Shows pieces until a record is available; false if there are no more.
  bool fill() {
    while (!input_->hasRecord()) {
      drop();
      if (input_->impossibleLength() || at_ == stream_.size()) return false;
      pieceBytes_ = std::min(sizes_(), stream_.size() - at_);
      piece_ = std::make_unique<uint8_t[]>(pieceBytes_);
      std::copy_n(&stream_[at_], pieceBytes_, piece_.get());
      at_ += pieceBytes_;
      input_->show({piece_.get(), pieceBytes_});
    }
    return true;
  }

  /// Takes the available record, and frees its piece if the input no longer needs it.
  void take() {
    input_->take();
    if (!input_->hasRecord()) drop();
  }

  /// The bytes that were not shown yet.
  Bytes rest() const { return {stream_.begin() + static_cast<ptrdiff_t>(at_), stream_.end()}; }

 private:
  void drop() {
    std::fill_n(piece_.get(), std::exchange(pieceBytes_, 0), uint8_t{0xEE});
    piece_.reset();
  }

  RecordInput* input_;
  Bytes stream_;
  PieceSizes sizes_;
  size_t at_ = 0;
  std::unique_ptr<uint8_t[]> piece_;
  size_t pieceBytes_ = 0;
};

}  // namespace capfleet::test
