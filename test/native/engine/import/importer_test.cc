#include "import/importer.h"

#include <gtest/gtest.h>

#include "support/capture_bytes.h"
#include "support/compressed_bytes.h"
#include "support/places.h"
#include "support/seed.h"
#include "support/stored_packets.h"

namespace capfleet::test {
namespace {

constexpr uint32_t kMicros = 0xA1B2C3D4;

class Importer : public testing::Test {
 protected:
  Result<ImportResult> import(const std::vector<std::string>& files) {
    ImportOptions options;
    options.files = files;
    options.directory = newOutput();
    options.segmentBytes = segmentBytes_;
    options.sortBytes = sortBytes_;
    options.maxBytes = maxBytes_;
    return importCaptureFiles(options, onProgress_);
  }
  ImportResult imported(const std::vector<std::string>& files) {
    auto result = import(files);
    if (!result) {
      ADD_FAILURE() << result.error().message;
      return {};
    }
    return *result;
  }
  std::string newOutput() {
    output_ = directory_.folder("out" + std::to_string(outputs_++));
    return output_;
  }
  std::vector<StoredPacket> stored(uint32_t port) {
    return storedPackets(output_ + "/cap" + std::to_string(port));
  }
  std::vector<std::string> outputNames() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(output_)) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  TempDirectory directory_;
  std::string output_;
  int outputs_ = 0;
  uint64_t segmentBytes_ = 1 << 30;
  uint64_t sortBytes_ = 1 << 20;
  uint64_t maxBytes_ = std::numeric_limits<uint64_t>::max();
  std::function<bool(const ImportProgress&)> onProgress_;
};

TEST_F(Importer, StoresAPcapWithItsLinkTypeWordAndNanoseconds) {
  PcapBytes file({.isBigEndian = true, .magic = kMicros, .linkTypeWord = 0x24000001});
  file.packet(1, 2, {1, 2}, 60).packet(3, 4, {}, 9);
  const auto result = imported({directory_.file("a.pcap", file.bytes())});
  EXPECT_EQ(result.packets, 2u);
  EXPECT_TRUE(result.damages.empty());
  ASSERT_EQ(result.streams.size(), 1u);
  EXPECT_EQ(result.streams[0].port, 0u);
  EXPECT_EQ(result.streams[0].header.linkTypeWord, 0x24000001u);
  ASSERT_EQ(result.streams[0].segments.size(), 1u);
  EXPECT_EQ(result.streams[0].segments[0].minNs, 1'000'002'000);
  EXPECT_EQ(result.streams[0].segments[0].maxNs, 3'000'004'000);
  EXPECT_EQ(stored(0),
            (std::vector<StoredPacket>{{1'000'002'000, 60, {1, 2}}, {3'000'004'000, 9, {}}}));
  EXPECT_EQ(outputNames(), std::vector<std::string>{"cap0"});
}

TEST_F(Importer, MakesAPortOfEachPcapngInterfaceEvenWithoutPackets) {
  PcapngBytes file;
  file.section(false).interface(1).interface(101).interface(113);
  file.enhancedPacket(2, 7, {1}, 1).enhancedPacket(0, 5, {2}, 1);
  file.section(true).interface(101).interface(101).enhancedPacket(0, 6, {3}, 1);
  const auto result = imported({directory_.file("a.pcapng", file.bytes())});
  ASSERT_EQ(result.streams.size(), 4u);
  const std::vector<uint32_t> linkTypes = {1, 101, 113, 101};
  for (uint32_t port = 0; port < 4; ++port) {
    EXPECT_EQ(result.streams[port].port, port);
    EXPECT_EQ(result.streams[port].header.linkTypeWord, linkTypes[port]);
    EXPECT_EQ(result.streams[port].segments.empty(), port == 1);
  }
  EXPECT_EQ(outputNames(), (std::vector<std::string>{"cap0", "cap2", "cap3"}));
  EXPECT_EQ(stored(3), (std::vector<StoredPacket>{{6000, 1, {3}}}));
}

TEST_F(Importer, JoinsFilesInOrderWhateverTheirFormatAndCompression) {
  PcapBytes first;
  first.packet(5, 0, {1}, 1).packet(9, 0, {2}, 1);
  PcapngBytes second;
  second.section(true).interface(1).enhancedPacket(0, 5'000'000, {3}, 1);
  PcapBytes third({.magic = kMicros});
  third.packet(1, 0, {4}, 1).packet(9, 0, {5}, 1);
  const auto result = imported({directory_.file("a", first.bytes()),
                                directory_.file("b", gzipMember(second.bytes())),
                                directory_.file("c", zstdFrame(third.bytes()))});
  EXPECT_EQ(result.packets, 5u);
  std::vector<uint8_t> order;
  for (const auto& packet : stored(0)) order.push_back(packet.captured.at(0));
  EXPECT_EQ(order, (std::vector<uint8_t>{4, 1, 3, 2, 5}));
}

TEST_F(Importer, ReadsJoinedFilesOneAfterAnotherAndSaysSo) {
  PcapBytes first;
  first.packet(1, 0, {1}, 60);
  PcapBytes second({.isBigEndian = true, .magic = kMicros});
  second.packet(2, 5, {2}, 61);
  PcapBytes withoutPackets;
  PcapBytes third({.magic = 0xA1B2CD34, .linkTypeWord = 101});
  third.packet(3, 0, {3}, 62);
  PcapngBytes fourth;
  fourth.section(true).interface(1).enhancedPacket(0, 4'000'000, {4}, 63);
  fourth.section(false).interface(1).enhancedPacket(0, 5'000'000, {5}, 64);
  Bytes joined;
  for (const Bytes& bytes : {first.bytes(), second.bytes(), withoutPackets.bytes(), third.bytes(),
                             fourth.bytes(), first.bytes()}) {
    append(joined, bytes);
  }
  const std::vector<StoredPacket> expected = {{1'000'000'000, 60, {1}},
                                              {1'000'000'000, 60, {1}},
                                              {2'000'005'000, 61, {2}},
                                              {4'000'000'000, 63, {4}},
                                              {5'000'000'000, 64, {5}}};
  for (const Bytes& bytes : {joined, gzipMember(joined)}) {
    const std::string path = directory_.file("joined", bytes);
    const auto result = imported({path});
    EXPECT_TRUE(result.damages.empty());
    EXPECT_EQ(result.packets, 6u);
    EXPECT_EQ(stored(0), expected);
    EXPECT_EQ(stored(1), (std::vector<StoredPacket>{{3'000'000'000, 62, {3}}}));
    ASSERT_EQ(result.notes.size(), 1u);
    EXPECT_EQ(result.notes[0].file, path);
    EXPECT_EQ(result.notes[0].message, "consists of capture files, one after another: 6");
  }
  const auto members = gzipMember(first.bytes());
  Bytes joinedMembers = members;
  append(joinedMembers, gzipMember(second.bytes()));
  EXPECT_EQ(imported({directory_.file("members.gz", joinedMembers)}).packets, 2u);
}

TEST_F(Importer, KeepsTheRestOfTheFilesWhenAJoinedOneIsCutOrOfAnotherVersion) {
  PcapBytes first;
  first.packet(1, 0, {1}, 60);
  const size_t end = first.bytes().size();
  Bytes joined = first.bytes();
  append(joined, PcapBytes().bytes());
  joined.pop_back();
  const std::string cut = directory_.file("cut.pcap", joined);
  const std::string next = directory_.file("next.pcap", first.bytes());
  const auto result = imported({cut, next});
  EXPECT_EQ(result.packets, 2u);
  ASSERT_EQ(result.damages.size(), 1u);
  EXPECT_EQ(result.damages[0].file, cut);
  EXPECT_EQ(result.damages[0].offset, end);
  EXPECT_EQ(result.damages[0].message,
            "the capture file that begins there ends inside the PCAP file header");
}

TEST_F(Importer, TakesAPacketOfTheSecondThatIsTheMagicForAPacket) {
  PcapBytes file({.magic = kMicros});
  file.packet(kMicros, 7, {1}, 60).packet(kMicros, 0x00050002, {2}, 60);
  const auto result = imported({directory_.file("a.pcap", file.bytes())});
  EXPECT_EQ(result.packets, 2u);
  EXPECT_TRUE(result.notes.empty());
}

TEST_F(Importer, SortsAndRollsRandomInputInLittleMemory) {
  auto random = seededRandom();
  PcapBytes file;
  std::vector<StoredPacket> expected;
  for (uint32_t i = 0; i < 5000; ++i) {
    const auto second = static_cast<uint32_t>(randomBelow(random, 1000));
    const Bytes captured(randomBelow(random, 100), 1);
    file.packet(second, 5, captured, i);
    expected.push_back({second * 1'000'000'000LL + 5, i, captured});
  }
  std::stable_sort(expected.begin(), expected.end(),
                   [](const auto& a, const auto& b) { return a.timestampNs < b.timestampNs; });
  sortBytes_ = 10'000;
  segmentBytes_ = 30'000;
  const auto result = imported({directory_.file("a.pcap", file.bytes())});
  EXPECT_GT(result.streams.at(0).segments.size(), 5u);
  EXPECT_TRUE(stored(0) == expected);
  EXPECT_EQ(outputNames(), std::vector<std::string>{"cap0"}) << "sort runs must be gone";
}

TEST_F(Importer, KeepsWhatComesBeforeDamageAndGoesOnWithTheNextFile) {
  PcapBytes damaged;
  damaged.packet(1, 0, {1}, 1);
  const size_t end = damaged.bytes().size();
  Bytes cut = damaged.packet(2, 0, {2}, 1).bytes();
  cut.pop_back();
  PcapBytes next;
  next.packet(3, 0, {3}, 1);
  const std::string plain = directory_.file("plain", cut);
  const std::string gzip = directory_.file("gzip", gzipMember(cut));
  Bytes torn = gzipMember(cut);
  torn.resize(torn.size() - 4);
  const std::string tornGzip = directory_.file("torn", torn);
  const auto result = imported({plain, gzip, tornGzip, directory_.file("next", next.bytes())});
  EXPECT_EQ(result.packets, 4u);
  ASSERT_EQ(result.damages.size(), 3u);
  EXPECT_EQ(result.damages[0].file, plain);
  EXPECT_EQ(result.damages[0].offset, end);
  EXPECT_FALSE(result.damages[0].compressed);
  EXPECT_EQ(result.damages[1].file, gzip);
  EXPECT_EQ(result.damages[1].offset, end);
  EXPECT_TRUE(result.damages[1].compressed);
  EXPECT_NE(result.damages[2].message.find("gzip"), std::string::npos);
}

TEST_F(Importer, KeepsAllWholePacketsOfAPcapCutAtEveryByte) {
  PcapBytes file;
  for (uint32_t i = 0; i < 4; ++i) file.packet(i, i, Bytes(i * 4, 1), 20);
  const Bytes whole = file.bytes();
  for (const size_t cut : somePlaces(0, whole.size() + 1)) {
    const std::string path = directory_.file(
        "cut.pcap", Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(cut)));
    const auto result = import({path});
    if (cut < file.ends()[0]) {
      ASSERT_FALSE(result) << cut;
      EXPECT_EQ(result.error().code, Code::kBadCaptureFile);
      EXPECT_TRUE(outputNames().empty());
      continue;
    }
    ASSERT_TRUE(result) << cut << ": " << result.error().message;
    const auto packets = std::count_if(file.ends().begin(), file.ends().end(),
                                       [cut](size_t end) { return end <= cut; });
    EXPECT_EQ(stored(0).size(), static_cast<size_t>(packets)) << cut;
  }
}

TEST_F(Importer, LeavesOutInputsThatAreNoCaptureFileAndNamesThem) {
  PcapBytes good;
  good.packet(1, 0, {1}, 1);
  const std::string goodPath = directory_.file("good.pcap", good.bytes());
  const std::string text = directory_.file("notes.txt", {'h', 'e', 'l', 'l', 'o'});
  const std::string empty = directory_.file("empty.pcap", {});
  const std::string emptyGzip = directory_.file("empty.gz", gzipMember({}));
  const std::vector<std::string> bad = {text, empty, emptyGzip, directory_.path() + "/missing"};
  const auto result = imported({text, goodPath, empty, emptyGzip, goodPath, bad[3]});
  EXPECT_EQ(result.packets, 2u);
  ASSERT_EQ(result.damages.size(), bad.size());
  for (size_t i = 0; i < bad.size(); ++i) {
    EXPECT_EQ(result.damages[i].file, bad[i]);
    EXPECT_EQ(result.damages[i].offset, 0u);
    EXPECT_NE(result.damages[i].message.find(bad[i]), std::string::npos);
  }
}

TEST_F(Importer, MakesNothingWhenNoInputIsACaptureFile) {
  const std::string text = directory_.file("notes.txt", {'h', 'e', 'l', 'l', 'o'});
  const std::string empty = directory_.file("empty.pcap", {});
  const auto result = import({text, empty});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kBadCaptureFile);
  for (const std::string& bad : {text, empty}) {
    EXPECT_NE(result.error().message.find(bad), std::string::npos) << result.error().message;
  }
  EXPECT_TRUE(outputNames().empty());
}

TEST_F(Importer, LeavesNothingOfABombAmongGoodInputsAndRefusesItAlone) {
  PcapBytes largest;
  for (uint32_t i = 0; i < 350; ++i) largest.packet(i, 0, Bytes(size_t{256} << 10), 256 << 10);
  const std::string bomb = directory_.file("bomb.pcap.zst", zstdFrame(largest.bytes()));
  PcapBytes good;
  good.packet(1, 0, {1}, 1);
  const std::string goodPath = directory_.file("good.pcap", good.bytes());
  const auto result = imported({goodPath, bomb, goodPath});
  EXPECT_EQ(result.packets, 2u);
  EXPECT_EQ(stored(0),
            (std::vector<StoredPacket>{{1'000'000'000, 1, {1}}, {1'000'000'000, 1, {1}}}));
  ASSERT_EQ(result.damages.size(), 1u);
  EXPECT_EQ(result.damages[0].file, bomb);
  EXPECT_EQ(result.damages[0].offset, 0u);
  const auto alone = import({bomb});
  ASSERT_FALSE(alone);
  EXPECT_EQ(alone.error().code, Code::kBadCaptureFile);
  EXPECT_NE(alone.error().message.find("more than 200 times"), std::string::npos);
  EXPECT_NE(alone.error().message.find("decompress it and import the result"), std::string::npos);
  EXPECT_TRUE(outputNames().empty());
}

TEST_F(Importer, TakesExactlyTheRoomThatItIsGivenAndLeavesNothingWhenThatIsTooLittle) {
  PcapBytes file;
  for (uint32_t i = 0; i < 100; ++i) file.packet(i, 0, Bytes(84), 84);
  const std::string path = directory_.file("a.pcap", file.bytes());
  maxBytes_ = 10'000;
  EXPECT_EQ(imported({path}).packets, 100u);
  maxBytes_ = 9'999;
  const auto result = import({path});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kStoreFull);
  EXPECT_NE(result.error().message.find("9999 bytes"), std::string::npos);
  EXPECT_TRUE(outputNames().empty());
}

TEST_F(Importer, CountsPacketsWhoseTimePcapCannotCarry) {
  PcapngBytes file;
  file.section(false).interface(1, {{9, {0}}});
  file.enhancedPacket(0, uint64_t{1} << 32, {1}, 1).enhancedPacket(0, 1, {2}, 1);
  const auto result = imported({directory_.file("a.pcapng", file.bytes())});
  EXPECT_EQ(result.packets, 1u);
  EXPECT_EQ(result.packetsOutOfTimeRange, 1u);
}

TEST_F(Importer, StoresAllPacketsOfMoreThan256Interfaces) {
  PcapngBytes declared;
  declared.section(false);
  for (int i = 0; i < 300; ++i) declared.interface(1);
  declared.enhancedPacket(0, 1, {1}, 1).enhancedPacket(299, 2, {2}, 1);
  const auto few = imported({directory_.file("declared.pcapng", declared.bytes())});
  EXPECT_EQ(few.packets, 2u);
  EXPECT_TRUE(few.damages.empty());
  EXPECT_TRUE(few.notes.empty());
  EXPECT_EQ(outputNames(), (std::vector<std::string>{"cap0", "cap255"}));

  PcapngBytes used;
  used.section(false);
  for (int i = 0; i < 300; ++i) used.interface(i == 9 ? 113 : 1);
  for (uint32_t i = 0; i < 300; ++i) used.enhancedPacket(i, i, {static_cast<uint8_t>(i)}, 1);
  const std::string path = directory_.file("used.pcapng", used.bytes());
  const auto all = imported({path});
  EXPECT_EQ(all.packets, 300u);
  EXPECT_TRUE(all.damages.empty());
  ASSERT_EQ(all.notes.size(), 1u);
  EXPECT_NE(all.notes[0].message.find("share a port"), std::string::npos);
  EXPECT_EQ(stored(0).size(), 45u);
  EXPECT_EQ(stored(9).size(), 1u);
}

TEST_F(Importer, ReportsOneFileWhosePacketsHaveMoreLinkTypesThanThereArePorts) {
  PcapngBytes file;
  file.section(false);
  for (uint16_t i = 0; i < 257; ++i) file.interface(i);
  for (uint32_t i = 0; i < 257; ++i) file.enhancedPacket(i, 1, {1}, 1);
  PcapBytes next({.linkTypeWord = 7});
  next.packet(3, 0, {3}, 1);
  const auto result = imported(
      {directory_.file("a.pcapng", file.bytes()), directory_.file("b.pcap", next.bytes())});
  EXPECT_EQ(result.packets, 257u);
  ASSERT_EQ(result.damages.size(), 1u);
  EXPECT_NE(result.damages[0].message.find("256"), std::string::npos);
}

TEST_F(Importer, MakesNoCaptureOfFilesWithoutPackets) {
  const std::string header = directory_.file("header.pcap", PcapBytes().bytes());
  PcapngBytes interfaces;
  interfaces.section(false).interface(1).interface(1);
  const std::string described = directory_.file("interfaces.pcapng", interfaces.bytes());
  PcapBytes damaged;
  damaged.packet(1, 0, {1}, 1);
  Bytes cut = damaged.bytes();
  cut.pop_back();
  const std::string damagedPath = directory_.file("damaged.pcap", cut);
  const std::string text = directory_.file("notes.txt", {'h', 'e', 'l', 'l', 'o'});
  const auto result = import({header, described, damagedPath, text});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kBadCaptureFile);
  for (const std::string& part :
       {text + " is neither PCAP", header + " contains no packets;",
        described + " contains no packets;",
        damagedPath + " contains no packets, and is damaged at offset 24: the file ends"}) {
    EXPECT_NE(result.error().message.find(part), std::string::npos) << result.error().message;
  }
  EXPECT_TRUE(outputNames().empty());

  PcapBytes good;
  good.packet(1, 0, {1}, 1);
  const auto mixed = imported({header, directory_.file("good.pcap", good.bytes())});
  EXPECT_EQ(mixed.packets, 1u);
  EXPECT_TRUE(mixed.damages.empty());
}

TEST_F(Importer, TellsItsProgressAndEndsWithAllOfIt) {
  PcapBytes file;
  for (uint32_t i = 0; i < 5000; ++i) file.packet(i, 0, Bytes(10), 10);
  std::vector<ImportProgress> seen;
  onProgress_ = [&](const ImportProgress& progress) {
    seen.push_back(progress);
    return true;
  };
  imported({directory_.file("a", file.bytes()), directory_.file("b", gzipMember(file.bytes()))});
  ASSERT_GE(seen.size(), 2u);
  EXPECT_EQ(seen.back().packets, 10'000u);
  EXPECT_GT(seen.back().inputBytes, file.bytes().size());
  for (const ImportProgress& progress : seen) {
    EXPECT_EQ(progress.totalInputBytes, seen.back().inputBytes);
    EXPECT_LE(progress.inputBytes, progress.totalInputBytes);
  }
}

TEST_F(Importer, LeavesNothingBehindWhenCancelled) {
  PcapBytes file;
  for (uint32_t i = 0; i < 5000; ++i) file.packet(i, 0, Bytes(500), 500);
  onProgress_ = [](const ImportProgress& progress) { return progress.packets < 4000; };
  const auto atTheEnd = import({directory_.file("a", file.bytes())});
  ASSERT_FALSE(atTheEnd);
  EXPECT_EQ(atTheEnd.error().code, Code::kCancelled);
  EXPECT_TRUE(outputNames().empty());
}

TEST_F(Importer, RefusesAFolderThatIsNotEmptyAndLeavesItAlone) {
  PcapBytes file;
  ImportOptions options;
  options.files = {directory_.file("a.pcap", file.bytes())};
  options.directory = directory_.path();
  const auto result = importCaptureFiles(options, {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kBadParameter);
  EXPECT_TRUE(std::filesystem::exists(options.files[0]));
}

TEST_F(Importer, RefusesAnEmptyList) {
  const auto result = import({});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kBadParameter);
}

}  // namespace
}  // namespace capfleet::test
