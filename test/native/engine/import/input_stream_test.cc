#include "import/input_stream.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/compressed_bytes.h"
#include "support/decoded_bytes.h"
#include "support/read_steps.h"

namespace capfleet::test {
namespace {

TEST(InputStream, TellsCompressionByTheFirstBytes) {
  const TempDirectory directory;
  const Bytes sample = sampleBytes(5000);
  const std::string plain = directory.file("plain", sample);
  const std::string gzip = directory.file("gzip", gzipMember(sample));
  const std::string zstd = directory.file("zstd", zstdFrame(sample));
  const std::string xz = directory.file("xz", xzStream(sample));
  const std::string lz4 = directory.file("lz4", lz4Frame(sample));
  const std::string bzip2 = directory.file("bzip2", bzip2Stream(sample));
  for (const std::string& path : {plain, gzip, zstd, xz, lz4, bzip2}) {
    auto stream = InputStream::open(path);
    ASSERT_TRUE(stream) << stream.error().message;
    EXPECT_EQ(stream->isCompressed(), path != plain);
    const auto bytes = stream->peek(5000);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), sample.begin(), sample.end())) << path;
    stream->consume(5000);
    EXPECT_TRUE(stream->peek(1).empty());
    EXPECT_FALSE(stream->failure());
    EXPECT_EQ(stream->offset(), 5000u);
    EXPECT_EQ(stream->inputBytes(), std::filesystem::file_size(path));
  }
}

TEST(InputStream, MovesItsWindowWithoutLosingBytes) {
  const Bytes sample = sampleBytes(10'000);
  InputStream stream(std::make_unique<MemorySource>(sample, 37), false, 256);
  size_t at = 0;
  for (size_t step = 1; at < sample.size(); step = step % 256 + 1) {
    const auto bytes = stream.peek(step);
    const size_t count = std::min(step, sample.size() - at);
    ASSERT_GE(bytes.size(), count);
    ASSERT_TRUE(std::equal(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(count),
                           sample.begin() + static_cast<ptrdiff_t>(at)));
    stream.consume(count);
    at += count;
    ASSERT_EQ(stream.offset(), at);
  }
}

/// Zeros as several zstd frames, which compress them some 20,000 times.
Bytes zeroFrames(size_t frames, size_t bytesPerFrame) {
  const Bytes frame = zstdFrame(Bytes(bytesPerFrame));
  Bytes out;
  for (size_t i = 0; i < frames; ++i) out.insert(out.end(), frame.begin(), frame.end());
  return out;
}

/// How many bytes come before the end or the failure.
uint64_t drain(InputStream& stream) {
  for (;;) {
    const size_t count = stream.peek(1).size();
    if (count == 0) return stream.offset();
    stream.consume(count);
  }
}

TEST(InputStream, EndsABombAfter64MiBAlsoWhenEachOfItsFramesIsSmall) {
  const TempDirectory directory;
  const std::string one = directory.file("one", zeroFrames(1, 70 << 20));
  const std::string many = directory.file("many", zeroFrames(100, 1 << 20));
  const std::string xz = directory.file("xz", xzStream(Bytes(70 << 20)));
  const std::string bzip2 = directory.file("bzip2", bzip2Stream(Bytes(70 << 20)));
  // lz4 is missing: it never expands to more than 255 times its size.
  for (const std::string& path : {one, many, xz, bzip2}) {
    auto stream = InputStream::open(path);
    ASSERT_TRUE(stream) << stream.error().message;
    EXPECT_LE(drain(*stream), size_t{66} << 20);
    EXPECT_TRUE(stream->isBomb());
    ASSERT_TRUE(stream->failure());
    EXPECT_NE(stream->failure()->message.find("more than 200 times"), std::string::npos);
  }
}

TEST(InputStream, LetsAnyFileBecome64MiBAndALargeOneAsManyTimesItsSizeAsItsReaderAllows) {
  const TempDirectory directory;
  const std::string small = directory.file("small", zeroFrames(64, 1 << 20));
  const std::string large = directory.file("large", zeroFrames(100, 1 << 20));
  auto stream = InputStream::open(small);
  auto allowed = InputStream::open(large, InputStream::kDefaultBufferBytes, 100'000);
  ASSERT_TRUE(stream && allowed);
  EXPECT_EQ(drain(*stream), size_t{64} << 20);
  EXPECT_FALSE(stream->failure());
  EXPECT_EQ(drain(*allowed), size_t{100} << 20);
  EXPECT_FALSE(allowed->failure());
}

TEST(InputStream, RefusesWhatIsNoRegularFileWithoutWaiting) {
  const TempDirectory directory;
  const std::string fifo = directory.path() + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& path : {fifo, directory.path(), directory.path() + "/none"}) {
    const auto stream = InputStream::open(path);
    ASSERT_FALSE(stream);
    EXPECT_EQ(stream.error().code, Code::kBadCaptureFile);
    EXPECT_NE(stream.error().message.find(path), std::string::npos);
  }
}

TEST(InputStream, FollowsNoSymbolicLink) {
  const TempDirectory directory;
  directory.file("target", sampleBytes(5000));
  const std::string link = directory.path() + "/link";
  ASSERT_EQ(symlink((directory.path() + "/target").c_str(), link.c_str()), 0);
  const auto stream = InputStream::open(link);
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().code, Code::kBadCaptureFile);
  EXPECT_EQ(stream.error().message, link + " is a symbolic link; name the file that it points to");
}

}  // namespace
}  // namespace capfleet::test
