#include "store/sieve_file.h"

#include <vector>

#include "os/file.h"
#include "store/segment_path.h"

namespace capfleet {
namespace {

/// Bytes read at once: they fit into the processor's cache.
constexpr size_t kReadBytes = 256 * 1024;
static_assert(kReadBytes >= 2 * kMaxStoredSieveBytes);

}  // namespace

bool hasSieves(const PcapFileHeader& header) {
  return linkTypeOf(header.linkTypeWord) == kLinkTypeEthernet;
}

uint64_t sieveFileBytes(const std::string& segment) {
  const auto file = File::openForRead(sievePath(segment));
  if (!file) return 0;
  const auto bytes = file->size();
  return bytes ? *bytes : 0;
}

void readSieves(const std::string& segment, std::span<const BlockEntry> blocks,
                const std::function<void(const StoredSieve&)>& visit) {
  const auto file = File::openForRead(sievePath(segment));
  if (!file) return;
  std::vector<uint8_t> buffer(kReadBytes);
  for (uint64_t offset = 0;;) {
    const auto count = file->readAt(offset, buffer);
    if (!count) return;
    std::span<const uint8_t> left(buffer.data(), *count);
    const bool isLast = *count < buffer.size();
    while (left.size() >= kMaxStoredSieveBytes || (isLast && !left.empty())) {
      // After a damaged sieve, the position of the next one is unknown.
      const auto stored = parseSieve(left, blocks);
      if (!stored) return;
      visit(*stored);
      left = left.subspan(stored->bytes);
    }
    if (isLast) return;
    offset += *count - left.size();
  }
}

}  // namespace capfleet
