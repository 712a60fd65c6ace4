// Imports captures and compares every packet with what libpcap reads from the same file.
#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include "import/importer.h"
#include "support/capture_bytes.h"
#include "support/seed.h"
#include "support/stored_packets.h"

namespace capfleet::test {
namespace {

/// Third-party captures, which may be missing.
const std::string kCaptures = CAPFLEET_REPOSITORY "/../shared/captures";
constexpr uint32_t kStartSeconds = 1'700'000'000;
constexpr int kPackets = 300;

/// Calls `add` with seconds, nanoseconds, bytes and original length of packets: many with equal
/// times, some earlier than the previous one, some truncated.
template <typename Add>
void addPackets(std::mt19937_64& random, Add add) {
  int64_t ns = 0;
  for (int i = 0; i < kPackets; i++) {
    if (random() % 3 != 0) ns += static_cast<int64_t>(randomBelow(random, 30'000'000));
    if (random() % 20 == 0) ns -= std::min<int64_t>(ns, 100'000'000);
    Bytes captured(randomBelow(random, 300));
    for (uint8_t& byte : captured) byte = static_cast<uint8_t>(random());
    // No CAN frames in cooked captures (113, 276), whose identifiers libpcap converts to this
    // machine's byte order.
    for (const size_t protocol : {0, 14}) {
      if (captured.size() > protocol) captured[protocol] |= 0x40;
    }
    const auto cut = random() % 4 == 0 ? static_cast<uint32_t>(randomBelow(random, 9'000)) : 0U;
    add(static_cast<uint32_t>(kStartSeconds + ns / kNanosPerSecond),
        static_cast<uint32_t>(ns % kNanosPerSecond), captured,
        static_cast<uint32_t>(captured.size()) + cut);
  }
}

Bytes madePcap(std::mt19937_64& random, PcapShape shape) {
  PcapBytes file(shape);
  const bool isNano = shape.magic == 0xA1B23C4D;
  addPackets(random, [&](uint32_t seconds, uint32_t ns, const Bytes& captured, uint32_t length) {
    file.packet(seconds, isNano ? ns : ns / 1000, captured, length);
  });
  return file.bytes();
}

/// Interfaces that count milliseconds, microseconds or nanoseconds, one of them with another
/// origin.
Bytes madePcapng(std::mt19937_64& random, bool isBigEndian, bool isCooked) {
  const uint16_t linkType = isCooked ? 276 : 1;
  constexpr uint16_t kResolution = 9, kOffset = 14;
  constexpr uint32_t kSnaplen = 65535;
  constexpr uint64_t kZeroSeconds = 1'000'000'000;
  PcapngBytes file;
  file.section(isBigEndian);
  file.interface(linkType, {}, kSnaplen).interface(linkType, {{kResolution, {9}}}, kSnaplen);
  file.interface(linkType, {{kResolution, {3}}}, kSnaplen);
  file.interface(linkType, {{kResolution, {9}}, {kOffset, file.option64(kZeroSeconds)}}, kSnaplen);
  addPackets(random, [&](uint32_t seconds, uint32_t ns, const Bytes& captured, uint32_t length) {
    const uint64_t whole = uint64_t{seconds} * kNanosPerSecond + ns;
    switch (random() % 5) {
      case 0:
        return void(file.enhancedPacket(0, whole / 1'000, captured, length));
      case 1:
        return void(file.enhancedPacket(2, whole / 1'000'000, captured, length));
      case 2:
        return void(
            file.enhancedPacket(3, whole - kZeroSeconds * kNanosPerSecond, captured, length));
      case 3:
        return void(file.obsoletePacket(1, whole, captured, length));
      default:
        return void(file.enhancedPacket(1, whole, captured, length));
    }
  });
  return file.bytes();
}

/// Writes one file of each kind, and returns their paths.
std::vector<std::string> madeFiles(const TempDirectory& directory) {
  auto random = seededRandom();
  std::vector<std::string> paths;
  const auto keep = [&](const Bytes& bytes) {
    paths.push_back(directory.file("made" + std::to_string(paths.size()), bytes));
  };
  for (const bool isBigEndian : {false, true}) {
    for (const uint32_t magic : {0xA1B23C4DU, 0xA1B2C3D4U, 0xA1B2CD34U}) {
      for (const uint32_t linkType : {1U, 0x24000001U, 101U, 113U}) {
        keep(madePcap(random, {isBigEndian, magic, linkType}));
      }
    }
    for (const bool isCooked : {false, true}) keep(madePcapng(random, isBigEndian, isCooked));
    keep(PcapBytes({.isBigEndian = isBigEndian}).bytes());
  }
  return paths;
}

struct ClosePcap {
  void operator()(pcap_t* pcap) const { pcap_close(pcap); }
};

/// The packets of a file as libpcap reads them, without those whose times PCAP cannot represent.
std::vector<StoredPacket> packetsByLibpcap(const std::string& path, uint32_t& linkType) {
  char message[PCAP_ERRBUF_SIZE];
  const std::unique_ptr<pcap_t, ClosePcap> pcap(
      pcap_open_offline_with_tstamp_precision(path.c_str(), PCAP_TSTAMP_PRECISION_NANO, message));
  if (!pcap) {
    ADD_FAILURE() << path << ": " << message;
    return {};
  }
  linkType = static_cast<uint32_t>(pcap_datalink(pcap.get()));
  std::vector<StoredPacket> packets;
  pcap_pkthdr* header = nullptr;
  const u_char* bytes = nullptr;
  while (pcap_next_ex(pcap.get(), &header, &bytes) == 1) {
    // libpcap sign-extends a fraction of 2^31 or more; in the file it is unsigned.
    const int64_t timestampNs =
        int64_t{header->ts.tv_sec} * kNanosPerSecond + static_cast<uint32_t>(header->ts.tv_usec);
    if (timestampNs >= kTimestampEndNs) continue;
    packets.push_back({timestampNs, header->len, Bytes(bytes, bytes + header->caplen)});
  }
  return packets;
}

bool comesBefore(const StoredPacket& a, const StoredPacket& b) {
  return std::tie(a.timestampNs, a.originalLength, a.captured) <
         std::tie(b.timestampNs, b.originalLength, b.captured);
}

/// Returns the number of packets.
size_t checkImport(const std::string& path) {
  const TempDirectory directory;
  ImportOptions options;
  options.files = {path};
  options.directory = directory.path();
  uint32_t linkType = 0;
  auto expected = packetsByLibpcap(path, linkType);
  const auto result = importCaptureFiles(options, {});
  if (!result) {
    EXPECT_TRUE(expected.empty()) << path << ": " << result.error().message;
    return 0;
  }
  EXPECT_TRUE(result->damages.empty()) << path;
  std::vector<StoredPacket> stored;
  for (const ImportedStream& stream : result->streams) {
    const auto packets = storedPackets(directory.path() + "/cap" + std::to_string(stream.port));
    stored.insert(stored.end(), packets.begin(), packets.end());
  }
  std::sort(stored.begin(), stored.end(), comesBefore);
  std::sort(expected.begin(), expected.end(), comesBefore);
  EXPECT_TRUE(stored == expected) << path;
  EXPECT_EQ(result->packets, expected.size()) << path;
  return expected.size();
}

TEST(ImporterOracle, StoresEveryKindOfCaptureAsLibpcapReadsIt) {
  const TempDirectory directory;
  size_t packets = 0;
  for (const std::string& path : madeFiles(directory)) packets += checkImport(path);
  EXPECT_EQ(packets, 28U * kPackets);
  if (!std::filesystem::exists(kCaptures)) return;
  for (const auto& entry : std::filesystem::directory_iterator(kCaptures)) {
    if (entry.path().extension() != ".json") checkImport(entry.path());
  }
}

}  // namespace
}  // namespace capfleet::test
