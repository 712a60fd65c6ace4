// Imports real captures and compares every packet with what libpcap reads from the same file.
#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include "import/importer.h"
#include "support/stored_packets.h"

namespace capfleet::test {
namespace {

const std::string kCaptures = CAPFLEET_REPOSITORY "/../shared/captures";

struct ClosePcap {
  void operator()(pcap_t* pcap) const { pcap_close(pcap); }
};

/// The packets of a file as libpcap reads them, without those that PCAP cannot date.
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

TEST(ImporterOracle, StoresRealCapturesAsLibpcapReadsThem) {
  if (!std::filesystem::exists(kCaptures)) GTEST_SKIP() << "../shared/captures is not there";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kCaptures)) {
    const std::string path = entry.path();
    if (entry.path().extension() == ".json") continue;
    const TempDirectory directory;
    ImportOptions options;
    options.files = {path};
    options.directory = directory.path();
    const auto result = importCaptureFiles(options, {});
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_TRUE(result->damages.empty()) << path;
    std::vector<StoredPacket> stored;
    for (const ImportedStream& stream : result->streams) {
      const auto packets = storedPackets(directory.path() + "/cap" + std::to_string(stream.port));
      stored.insert(stored.end(), packets.begin(), packets.end());
    }
    uint32_t linkType = 0;
    auto expected = packetsByLibpcap(path, linkType);
    std::sort(stored.begin(), stored.end(), comesBefore);
    std::sort(expected.begin(), expected.end(), comesBefore);
    EXPECT_TRUE(stored == expected) << path;
    EXPECT_EQ(result->packets, expected.size()) << path;
    ++files;
  }
  EXPECT_GT(files, 20);
}

}  // namespace
}  // namespace capfleet::test
