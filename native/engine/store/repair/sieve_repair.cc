#include "store/repair/sieve_repair.h"

#include <algorithm>
#include <vector>

#include "os/file.h"
#include "store/block_reader.h"
#include "store/segment_path.h"
#include "store/sieve_file.h"

namespace capfleet {
namespace {

/// The contents of a segment's sieve file, as far as it can be read.
struct FoundSieves {
  std::vector<bool> isThere;  ///< by the number of the block
  uint64_t bytes = 0;  ///< starting at the file's beginning; sieves after these are never read
};

FoundSieves findSieves(const std::string& segment, const SegmentIndex& index) {
  FoundSieves found;
  found.isThere.resize(index.blocks.size());
  readSieves(segment, index.blocks, [&](const StoredSieve& stored) {
    found.isThere[stored.number] = true;
    found.bytes += stored.bytes;
  });
  return found;
}

struct MadeSieves {
  std::vector<uint8_t> bytes;
  uint64_t count = 0;
};

/// Reads only the blocks without a sieve.
Result<MadeSieves> makeMissing(const SegmentFile& file, BlockReader& reader,
                               const SegmentIndex& index, const FoundSieves& found,
                               const std::function<bool()>& goesOn) {
  MadeSieves made;
  for (uint32_t number = 0; number < index.blocks.size(); number++) {
    if (found.isThere[number]) continue;
    if (!goesOn()) return Error{Code::kCancelled, "the creation of sieves was cancelled"};
    const BlockEntry& entry = index.blocks[number];
    auto block = reader.load(file, entry);
    if (!block) return block.error();
    if (!*block) continue;
    appendSieve(made.bytes, number, {(*block)->bytes.data(), entry.bytes}, entry);
    made.count++;
    reader.give(std::move(*block));
  }
  return made;
}

/// Appends after the sieves that can be read, replacing what follows them. So nothing useful is
/// lost if the disk is full.
Status appendBehind(const std::string& path, uint64_t keptBytes, std::span<const uint8_t> bytes) {
  auto file = File::openForAppend(path, true);
  if (!file) return file.error();
  if (auto status = file->resize(keptBytes); !status) return status;
  return file->write(bytes);
}

}  // namespace

Result<uint64_t> addSieves(const std::string& segment, const std::function<bool()>& goesOn) {
  const auto index = readSegmentIndex(segment);
  if (!index) return index.error();
  if (!hasSieves(index->header)) return 0;
  const FoundSieves found = findSieves(segment, *index);
  if (std::find(found.isThere.begin(), found.isThere.end(), false) == found.isThere.end()) return 0;
  BlockReader reader;
  const auto file = SegmentFile::open(segment);
  if (!file) return file.error();
  const auto made = makeMissing(*file, reader, *index, found, goesOn);
  if (!made) return made.error();
  if (made->count == 0) return 0;
  const std::string path = sievePath(segment);
  if (auto status = appendBehind(path, found.bytes, made->bytes); !status) return status.error();
  // The segment may have been removed while its sieves were written.
  if (const auto kept = file->readAt(0, {}); !kept) {
    if (auto status = removeFile(path); !status) return status.error();
    return kept.error();
  }
  return made->count;
}

}  // namespace capfleet
