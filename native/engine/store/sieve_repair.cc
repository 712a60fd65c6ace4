#include "store/sieve_repair.h"

#include <vector>

#include "os/file.h"
#include "store/block_reader.h"
#include "store/sieve_file.h"

namespace capfleet {
namespace {

uint64_t countSieves(const std::string& segment, const SegmentIndex& index) {
  uint64_t count = 0;
  readSieves(segment, index.blocks, [&](const StoredSieve&) { count++; });
  return count;
}

struct MadeSieves {
  std::vector<uint8_t> bytes;
  uint64_t count = 0;
};

Result<MadeSieves> makeSieves(BlockReader& reader, const SegmentFile& file,
                              const SegmentIndex& index, const std::function<bool()>& goesOn) {
  MadeSieves made;
  for (uint32_t number = 0; number < index.blocks.size(); number++) {
    if (!goesOn()) return Error{Code::kCancelled, "the making of sieves was cancelled"};
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

/// In place of those that there are. A reader that comes meanwhile finds less of them.
Status replaceSieves(const std::string& path, std::span<const uint8_t> bytes) {
  auto file = File::openForAppend(path, true);
  if (!file) return file.error();
  if (auto status = file->resize(0); !status) return status;
  return file->write(bytes);
}

}  // namespace

Result<uint64_t> addSieves(const std::string& segment, const std::function<bool()>& goesOn) {
  const auto index = readSegmentIndex(segment);
  if (!index) return index.error();
  if (!hasSieves(index->header)) return 0;
  const uint64_t before = countSieves(segment, *index);
  if (before == index->blocks.size()) return 0;
  BlockReader reader({segment});
  const auto file = reader.open(0);
  if (!file) return file.error();
  const auto made = makeSieves(reader, **file, *index, goesOn);
  if (!made) return made.error();
  if (made->count == before) return 0;
  const std::string path = sievePath(segment);
  if (auto status = replaceSieves(path, made->bytes); !status) return status.error();
  // The segment may have been removed while its sieves were written.
  if (const auto kept = (*file)->readAt(0, {}); !kept) {
    if (auto status = removeFile(path); !status) return status.error();
    return kept.error();
  }
  return made->count - before;
}

}  // namespace capfleet
